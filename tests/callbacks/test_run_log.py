import json
import sys
import types
import warnings

import keras
import numpy as np
import pytest
from scripted import tiny_config

from keras_dreamer.callbacks import run_log
from keras_dreamer.callbacks.run_log import RunLog
from keras_dreamer.driver import Episode


class Broken:
    """A sink that fails at its second event."""

    events = 0

    def __init__(self, logdir, start):
        pass

    def write(self, event, step):
        Broken.events += 1
        if Broken.events >= 2:
            raise OSError("disk full")

    def close(self):
        raise OSError("still full")


@pytest.fixture(autouse=True)
def sinks(monkeypatch):
    """Replaces TensorBoard by a sink that remembers."""
    seen = []

    class Memory:
        def __init__(self, logdir, start):
            pass

        def write(self, event, step):
            seen.append((event["event"], step))

        def close(self):
            seen.append("closed")

    monkeypatch.setattr(run_log, "TensorBoard", Memory)
    return seen


def start(callback, ratio=None):
    model = types.SimpleNamespace(config=tiny_config(), seed=3)
    callback.set_model(model)
    callback.set_ratio(ratio)
    callback.on_train_begin()
    callback.on_epoch_begin(0)


def events(path):
    text = (path / "log.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_the_first_line_says_what_runs(tmp_path):
    callback = RunLog(tmp_path)
    start(callback)
    (event,) = events(tmp_path)
    assert event["event"] == "start" and event["seed"] == 3
    assert event["backend"] == keras.backend.backend()
    assert event["config"] == tiny_config().to_dict()


def test_episodes_come_one_by_one_then_the_epoch(tmp_path, sinks):
    ratio = types.SimpleNamespace(episodes=[])
    callback = RunLog(tmp_path)
    start(callback, ratio)
    ratio.episodes += [Episode(1, 2.5, 9, 20, 40)]
    callback.on_train_batch_end(0)
    ratio.episodes += [Episode(0, 3.5, 8, 30, 60)]
    callback.on_train_batch_end(1)
    callback.on_train_batch_end(2)
    logs = {"loss": np.float32(0.5), "agent_steps": 40, "updates": 13}
    callback.on_epoch_end(0, {**logs, "episode/return": float("nan")})
    ratio.episodes = []
    callback.on_epoch_begin(1)
    ratio.episodes = [Episode(1, 4.5, 7, 50, 100)]
    callback.on_train_batch_end(0)
    _, *found = events(tmp_path)
    assert [e.pop("event") for e in found] == [
        "episode",
        "episode",
        "epoch",
        "episode",
    ]
    assert all(e.pop("time") > 0 for e in found)
    assert found == [
        {
            "agent_steps": 20,
            "env_steps": 40,
            "stream": 1,
            "return": 2.5,
            "length": 9,
        },
        {
            "agent_steps": 30,
            "env_steps": 60,
            "stream": 0,
            "return": 3.5,
            "length": 8,
        },
        {**logs, "loss": 0.5, "epoch": 0, "episode/return": None},
        {
            "agent_steps": 50,
            "env_steps": 100,
            "stream": 1,
            "return": 4.5,
            "length": 7,
        },
    ]
    steps = [("episode", 20), ("episode", 30), ("epoch", 40), ("episode", 50)]
    assert sinks == steps
    callback.on_train_end()
    assert sinks[-1] == "closed"


def test_without_environments_steps_are_updates(tmp_path, sinks):
    callback = RunLog(tmp_path)
    start(callback)
    callback.on_train_batch_end(0)
    callback.on_train_batch_end(1)
    callback.on_epoch_end(0, {"loss": 1.0})
    assert sinks == [("epoch", 2)]
    assert events(tmp_path)[-1]["updates"] == 2


def test_what_fails_warns_once_and_the_rest_goes_on(
    tmp_path, monkeypatch, sinks
):
    monkeypatch.setattr(run_log, "JsonLines", Broken)
    callback = RunLog(tmp_path)
    start(callback)
    callback.on_epoch_end(0, {})
    with pytest.warns(UserWarning, match="Broken cannot log.*disk full"):
        callback.on_epoch_end(1, {})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        callback.on_epoch_end(2, {})
        callback.on_train_end()
    assert sinks == [("epoch", 0)] * 3 + ["closed"]


def test_what_cannot_start_warns_once(tmp_path, monkeypatch, sinks):
    monkeypatch.setitem(sys.modules, "wandb", None)
    callback = RunLog(tmp_path, wandb=True)
    with pytest.warns(UserWarning, match="WandB cannot log.*not installed"):
        start(callback)
    callback.on_epoch_end(0, {"loss": 1.0})
    assert sinks == [("epoch", 0)]
    assert events(tmp_path)[-1]["loss"] == 1.0


def test_a_logdir_that_cannot_be_made_only_warns(tmp_path, sinks):
    (tmp_path / "file").touch()
    callback = RunLog(tmp_path / "file" / "run")
    with pytest.warns(UserWarning, match="JsonLines cannot log"):
        start(callback)


def test_a_resumed_epoch_writes_no_episode_twice(tmp_path, sinks):
    ratio = types.SimpleNamespace(episodes=[Episode(1, 2.5, 9, 20, 40)])
    callback = RunLog(tmp_path)
    callback.set_state({"updates": 7})
    start(callback, ratio)
    ratio.episodes += [Episode(0, 3.5, 8, 30, 60)]
    callback.on_train_batch_end(0)
    callback.on_epoch_end(0, {})
    assert sinks == [("episode", 30), ("epoch", 8)]
    assert callback.get_state() == {"updates": 8}
