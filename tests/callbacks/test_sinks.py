import json
import struct
import sys
import types

import pytest

from keras_dreamer.callbacks import sinks

START = {"event": "start", "time": 0.5, "config": {"lr": 1e-3}}
EPOCH = {"event": "epoch", "time": 1.5, "epoch": 0, "loss": 2.0}
EPISODE = {"event": "episode", "time": 1.0, "return": 3.0, "length": 4}


def lines(path):
    text = (path / "log.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_json_lines_are_there_at_once(tmp_path):
    sink = sinks.JsonLines(tmp_path / "run", START)
    sink.write(EPOCH, 7)
    assert lines(tmp_path / "run") == [START, EPOCH]
    sink.close()


def test_json_lines_are_appended_and_strict(tmp_path):
    for value in (float("nan"), float("-inf")):
        sink = sinks.JsonLines(tmp_path, START)
        sink.write({**EPOCH, "loss": value}, 0)
        sink.close()
    assert lines(tmp_path) == 2 * [START, {**EPOCH, "loss": None}]


def test_scalars_of_epochs_and_episodes():
    assert sinks.scalars({**EPOCH, "a": float("nan"), "b": "text"}) == {
        "epoch": 0.0,
        "loss": 2.0,
    }
    assert sinks.scalars(EPISODE) == {
        "train_episode/return": 3.0,
        "train_episode/length": 4.0,
    }


def read_scalars(path):
    """Reads an event file by its format; tensorboard imports TensorFlow."""
    events = pytest.importorskip("tensorboardX.proto.event_pb2")
    data, found = path.read_bytes(), {}
    while data:  # Length (8 bytes), checksum (4), event, checksum (4).
        (length,) = struct.unpack("<Q", data[:8])
        event = events.Event.FromString(data[12 : 12 + length])
        data = data[16 + length :]
        for value in event.summary.value:
            if value.WhichOneof("value") == "simple_value":
                new = (event.step, value.simple_value)
                found.setdefault(value.tag, []).append(new)
    return found


def test_tensorboard_files_hold_what_was_written(tmp_path):
    pytest.importorskip("tensorboardX")
    sink = sinks.TensorBoard(tmp_path, START)
    sink.write(EPISODE, 5)
    sink.write(EPOCH, 7)
    sink.close()
    (path,) = tmp_path.glob("events.out.*")
    found = read_scalars(path)
    assert found == {
        "train_episode/return": [(5, 3.0)],
        "train_episode/length": [(5, 4.0)],
        "epoch": [(7, 0.0)],
        "loss": [(7, 2.0)],
    }


def test_wandb_gets_configuration_and_numbers(tmp_path, monkeypatch):
    calls = []
    run = types.SimpleNamespace(
        log=lambda values, step: calls.append((values, step)),
        finish=lambda: calls.append("finish"),
    )

    def init(**kwargs):
        calls.append(kwargs)
        return run

    monkeypatch.setitem(sys.modules, "wandb", types.SimpleNamespace(init=init))
    sink = sinks.WandB(tmp_path / "walker", START)
    sink.write(EPOCH, 7)
    sink.close()
    started, logged, finished = calls
    assert started["name"] == "walker" and started["config"] == START
    assert logged == ({"epoch": 0.0, "loss": 2.0}, 7)
    assert finished == "finish"


@pytest.mark.parametrize(
    "sink, module, extra",
    [
        (sinks.TensorBoard, "tensorboardX", "log"),
        (sinks.WandB, "wandb", "wandb"),
    ],
    ids=["tensorboardX", "wandb"],
)
def test_a_missing_package_is_named(sink, module, extra, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    message = rf"{module} is not installed.*keras-dreamer\[{extra}\]"
    with pytest.raises(ImportError, match=message):
        sink(tmp_path, START)
