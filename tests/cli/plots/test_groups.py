import runs

from keras_dreamer_cli.plots.groups import differing
from keras_dreamer_cli.plots.groups import group_runs
from keras_dreamer_cli.plots.groups import labels


def grouped(*members):
    return {
        group.label: [run.logdir.name for run in group.runs]
        for group in group_runs(members)
    }


def test_seeds_are_one_group():
    found = grouped(runs.make_run("a", seed=0), runs.make_run("b", seed=1))
    assert found == {"gym:A-v0": ["a", "b"]}


def test_settings_make_groups_and_their_names():
    found = grouped(
        runs.make_run("a", lr=1e-3),
        runs.make_run("b", lr=4e-5),
        runs.make_run("c", lr=1e-3, seed=1),
    )
    assert found == {"lr 0.001": ["a", "c"], "lr 4e-05": ["b"]}


def test_environments_make_groups():
    found = grouped(runs.make_run("a"), runs.make_run("b", env="gym:B-v0"))
    assert found == {"gym:A-v0": ["a"], "gym:B-v0": ["b"]}


def test_longer_runs_are_the_same():
    found = grouped(
        runs.make_run("a", env_steps=100), runs.make_run("b", env_steps=200)
    )
    assert found == {"gym:A-v0": ["a", "b"]}


def test_what_follows_from_the_size_is_not_named():
    pair = [
        runs.make_run("a", size="1m", deter=512, ratio=8.0),
        runs.make_run("b", size="12m", deter=2048, ratio=8.0),
    ]
    assert differing(pair) == ["size"]
    assert labels(pair) == ["size 1m", "size 12m"]


def test_runs_of_different_environments_need_no_settings():
    pair = [runs.make_run("a"), runs.make_run("b", env="gym:B-v0", lr=1.0)]
    assert labels(pair) == ["gym:A-v0", "gym:B-v0"]
    pair.append(runs.make_run("c", env="gym:B-v0", lr=2.0))
    assert labels(pair) == ["gym:A-v0", "gym:B-v0, lr 1", "gym:B-v0, lr 2"]


def test_the_folder_names_what_nothing_else_does():
    # The run of a script does not say how many environments it had.
    pair = [runs.make_run("a", envs=4), runs.make_run("b")]
    assert labels(pair) == ["gym:A-v0 (a)", "gym:A-v0 (b)"]


def test_names_stay_short():
    pair = [
        runs.make_run(name, **{f"x{i}": value for i in range(9)})
        for name, value in (("a", 1), ("b", 2))
    ]
    assert labels(pair)[0] == "x0 1, x1 1, x2 1, x3 1"


def test_without_environment_the_folder_names_a_run():
    assert labels([runs.make_run("runs/mine", env=None)]) == ["mine"]
