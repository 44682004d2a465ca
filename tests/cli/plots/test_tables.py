import runs

from keras_dreamer_cli.plots import tables
from keras_dreamer_cli.plots.groups import group_runs


def column(table, name):
    index = table.head.index(name)
    return [row[index] for row in table.rows]


def test_results():
    # Of 200 episodes the newest 20.
    returns = [1.0] * 180 + [4.0, 8.0] * 10
    run = runs.make_run(steps=range(1, 201), returns=returns)
    table = tables.results(group_runs([run]))
    assert column(table, "final return") == ["6.0 ± 2.0 (20)"]
    assert column(table, "env steps") == ["200"]
    assert column(table, "updates") == ["50"]
    assert column(table, "episodes") == ["200"]
    assert column(table, "time") == ["0 h 02 min"]
    assert "published there" not in table.head


def test_results_beside_published_ones():
    run = runs.make_run(
        env="dmc:cartpole_balance", steps=[20_000], returns=[300.0]
    )
    table = tables.results(group_runs([run]))
    assert column(table, "published there") == ["226.7"]


def test_a_run_without_episodes():
    table = tables.results(group_runs([runs.make_run()]))
    assert column(table, "final return") == ["–"]


def test_a_short_run_has_all_its_episodes_in_the_final_return():
    run = runs.make_run(steps=[1, 2], returns=[1.0, 3.0])
    table = tables.results(group_runs([run]))
    assert column(table, "final return") == ["2.0 ± 1.0 (2)"]


def test_final_return_of_seeds():
    pair = [
        runs.make_run("a", seed=0, steps=[10], returns=[4.0]),
        runs.make_run("b", seed=1, steps=[10], returns=[8.0]),
        runs.make_run("c", seed=2),
    ]
    assert tables.final_return(group_runs(pair)[0]) == "6.0 ± 2.0"
    assert tables.final_return(group_runs(pair[2:])[0]) == "–"


def test_settings_that_differ_come_first_and_are_marked():
    pair = [runs.make_run("a", lr=1e-3), runs.make_run("b", lr=4e-5)]
    table = tables.settings(group_runs(pair))
    assert table.head == ["setting", "lr 0.001", "lr 4e-05"]
    assert table.rows[0] == ["lr", "0.001", "4e-05"]
    assert table.marked == {0}
    assert ["size", "1m", "1m"] in table.rows


def test_versions():
    table = tables.versions(group_runs([runs.make_run(), runs.make_run()]))
    assert ["keras", "3.15"] in table.rows
    assert "Python 3." in table.rows[-1][1]
