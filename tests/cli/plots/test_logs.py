import numpy as np
import pytest
import runs

from keras_dreamer_cli.plots.logs import continued
from keras_dreamer_cli.plots.logs import duration
from keras_dreamer_cli.plots.logs import flat
from keras_dreamer_cli.plots.logs import read_run


def test_reads_a_run_of_the_command_line(tmp_path):
    runs.write_log(
        tmp_path,
        runs.start(),
        runs.episode(20, 5.0),
        runs.epoch(24, 0.5, **{"episode/return": None}),
        runs.episode(40, 7.0),
        settings={
            "env": "dmc:walker_walk",
            "envs": 4,
            "seed": 3,
            "backend": "torch",
            "keras": "3.15",
            "config": {"lr": 1.0, "loss_scales": {"rec": 2.0}},
        },
    )
    run = read_run(tmp_path)
    assert (run.env, run.seed, run.logdir) == ("dmc:walker_walk", 3, tmp_path)
    assert run.settings == {
        "lr": 1.0,
        "loss_scales/rec": 2.0,
        "envs": 4,
        "backend": "torch",
    }
    assert run.versions["keras_dreamer"] == "0.1"
    assert run.episodes["return"].tolist() == [5.0, 7.0]
    assert run.episodes["env_steps"].tolist() == [20.0, 40.0]
    assert run.epochs["loss"].tolist() == [0.5]
    assert np.isnan(run.epochs["episode/return"]).all()


def test_reads_a_run_of_a_script(tmp_path):
    runs.write_log(tmp_path, runs.start(seed=2), runs.episode(20, 5.0))
    run = read_run(tmp_path, env="gym:A-v0")
    assert (run.env, run.seed) == ("gym:A-v0", 2)
    assert run.settings["loss_scales/rec"] == 1.0
    assert run.epochs == {}


def test_a_line_that_is_being_written_is_left_out(tmp_path):
    runs.write_log(tmp_path, runs.start(), runs.episode(20, 5.0))
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write('{"event": "epis')
    assert len(read_run(tmp_path).episodes["return"]) == 1


def test_what_a_killed_run_did_twice_counts_once():
    events = [
        runs.start(),
        runs.episode(20, 1.0),
        runs.episode(40, 2.0),
        runs.epoch(48, 2.0),
        runs.start(),  # From a checkpoint after 20 steps.
        runs.episode(36, 3.0),
        runs.epoch(48, 3.0),
    ]
    kept = continued(events)
    assert [e.get("return", e.get("loss")) for e in kept] == [1.0, 3.0, 3.0]


def test_breaks_take_no_time():
    # 5 seconds, a break of 100, 7 seconds.
    events = [
        runs.start(0.0),
        runs.episode(20, 1.0, time=5.0),
        runs.start(105.0),
        runs.episode(40, 1.0, time=112.0),
    ]
    assert duration(events) == 12.0


def test_flat():
    nest = {"a": 1, "b": {"c": 2, "d": {"e": 3}}}
    assert flat(nest) == {"a": 1, "b/c": 2, "b/d/e": 3}


def test_a_folder_without_log_is_refused(tmp_path):
    with pytest.raises(ValueError, match="holds no log.jsonl.*RunLog"):
        read_run(tmp_path)


def test_a_log_without_start_is_refused(tmp_path):
    runs.write_log(tmp_path, runs.episode(20, 1.0))
    with pytest.raises(ValueError, match="without one"):
        read_run(tmp_path)
