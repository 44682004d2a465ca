import json
import os
import time
import types
import warnings

import pytest

from keras_dreamer.callbacks.checkpoint import Checkpoint


class Model:
    """Stands in for `Dreamer`: the file holds the number of updates."""

    seed = 0
    updates = 0
    stop_training = False
    dtype_policy = types.SimpleNamespace(name="float32")
    optimizer = None

    def save(self, path):
        path.write_text(str(self.updates))

    def get_config(self):
        return dict.fromkeys(["config", "observation_space", "action_space"])


def make(tmp_path, model=None, **kwargs):
    checkpoint = Checkpoint(tmp_path, **kwargs)
    checkpoint.set_model(model or Model())
    checkpoint.set_run(types.SimpleNamespace(replay=None), [checkpoint])
    return checkpoint


def fit(checkpoint, epochs=2, steps=5, wait=lambda: None, at_end=None):
    """Calls what Keras calls in `fit`; returns the number of updates."""
    model = checkpoint.model
    model.stop_training, done = False, 0
    checkpoint.set_params({"epochs": epochs, "steps": steps})
    first = checkpoint.initial_epoch(steps)
    checkpoint.on_train_begin()
    for epoch in range(first, epochs):
        checkpoint.on_epoch_begin(epoch)
        for batch in range(steps):
            wait()
            model.updates += 1
            done += 1
            checkpoint.on_train_batch_end(batch)
            if model.stop_training:
                break
        if at_end:
            at_end()
        checkpoint.on_epoch_end(epoch)
        if model.stop_training:
            break
    checkpoint.on_train_end()
    return done


def saved(checkpoint):
    """Returns the number of updates of each checkpoint."""
    found = []
    for path in checkpoint.folder.finished():
        state = json.loads((path / "state.json").read_text())["content"]
        assert (path / "agent.keras").read_text() == str(state["updates"])
        found.append(state["updates"])
    return found


@pytest.fixture(autouse=True)
def no_optimizer(monkeypatch):
    monkeypatch.setattr("keras.saving.serialize_keras_object", lambda x: x)


def test_every_so_many_updates_and_at_the_end(tmp_path):
    checkpoint = make(tmp_path, every=3, keep=9)
    fit(checkpoint)
    assert saved(checkpoint) == [3, 6, 9, 10]
    assert checkpoint.newest == checkpoint.folder.finished()[-1]


def test_the_newest_are_kept(tmp_path):
    checkpoint = make(tmp_path, every=3, keep=2)
    fit(checkpoint)
    assert saved(checkpoint) == [9, 10]


def test_the_end_is_saved_once(tmp_path):
    checkpoint = make(tmp_path, every=5, keep=9)
    fit(checkpoint)
    assert saved(checkpoint) == [5, 10]


def test_at_the_end_of_an_epoch_its_logs_come_first(tmp_path):
    checkpoint = make(tmp_path, every=5, keep=9)
    seen = []
    fit(checkpoint, at_end=lambda: seen.append(saved(checkpoint)))
    assert seen == [[], [5]]


def test_every_so_many_minutes(tmp_path, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])

    def wait():
        clock[0] += 25.0  # Seconds of an update.

    checkpoint = make(tmp_path, every="1 minute", keep=9)
    fit(checkpoint, steps=10, epochs=1, wait=wait)
    assert saved(checkpoint) == [3, 6, 9, 10]


@pytest.mark.parametrize(
    "every, updates, seconds",
    [
        (7, 7, float("inf")),
        ("90 seconds", float("inf"), 90),
        ("1 minute", float("inf"), 60),
        ("2.5 minutes", float("inf"), 150),
        ("1 hour", float("inf"), 3600),
    ],
)
def test_intervals(tmp_path, every, updates, seconds):
    checkpoint = Checkpoint(tmp_path, every)
    assert (checkpoint.updates, checkpoint.seconds) == (updates, seconds)


@pytest.mark.parametrize("every", [0, -3, 2.5, "10", "0 minutes", "daily"])
def test_other_intervals_are_refused(tmp_path, every):
    with pytest.raises(ValueError, match="updates or a time. Received: every="):
        Checkpoint(tmp_path, every)


def test_at_least_one_is_kept(tmp_path):
    with pytest.raises(ValueError, match="1 or more. Received: keep=0. Use 2"):
        Checkpoint(tmp_path, keep=0)


def full(path):
    path.write_text("half")
    raise OSError(28, "No space left on device")


def test_a_full_disk_warns_once_and_training_goes_on(tmp_path, monkeypatch):
    model = Model()
    checkpoint = make(tmp_path, model, every=2, keep=9)
    fit(checkpoint, steps=3, epochs=1)
    assert saved(checkpoint) == [2, 3]
    monkeypatch.setattr(model, "save", full)
    model.updates = 0
    with pytest.warns(UserWarning, match="No space left.*on; the last one is "):
        # A second warning would be an error.
        warnings.simplefilter("once")
        assert fit(checkpoint) == 10
    assert len(checkpoint.folder.finished()) == 2
    assert len(list(checkpoint.folder.path.iterdir())) == 2
    monkeypatch.undo()
    monkeypatch.setattr("keras.saving.serialize_keras_object", lambda x: x)
    model.updates = 0
    fit(checkpoint, epochs=1, steps=1)
    assert saved(checkpoint)[-1] == 1
    monkeypatch.setattr(model, "save", full)  # It warns again.
    with pytest.warns(UserWarning, match="No space left"):
        fit(checkpoint)


@pytest.mark.parametrize("call", ["fsync", "mkdir", "rename"])
def test_wherever_the_disk_fails(tmp_path, monkeypatch, call):
    checkpoint = make(tmp_path, every=2)
    fit(checkpoint, steps=3, epochs=1)
    before = checkpoint.folder.finished()

    def fail(*args, **kwargs):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, call, fail)
    checkpoint.model.updates = 0
    with pytest.warns(UserWarning, match="Input/output error"):
        assert fit(checkpoint) == 10
    assert checkpoint.folder.finished() == before


def test_another_run_is_not_overwritten(tmp_path):
    fit(make(tmp_path))
    message = r"no checkpoints of another run.*\['00000001'\].*kd.resume\("
    with pytest.raises(ValueError, match=message):
        fit(make(tmp_path))


def test_fit_may_be_called_again(tmp_path):
    checkpoint = make(tmp_path, every=5, keep=9)
    fit(checkpoint)
    checkpoint.model.updates = 0
    fit(checkpoint)  # From epoch 0, as Keras counts.
    assert saved(checkpoint) == [5, 10, 5, 10]


def test_a_resumed_run_ends_after_as_many_updates(tmp_path):
    fit(make(tmp_path, every=7, keep=9), epochs=3)  # Saved after 7, 14, 15.
    model = Model()
    model.updates = 7
    checkpoint = make(tmp_path, model, every=5, keep=9)
    checkpoint.resume(checkpoint.folder.finished()[0], 7)
    assert checkpoint.initial_epoch(5) == 1
    assert fit(checkpoint, epochs=4) == 13
    assert saved(checkpoint) == [7, 14, 15, 12, 17, 20]
    # A later `fit` is another one.
    model.updates = 0
    assert checkpoint.initial_epoch(5) == 0
    assert fit(checkpoint, epochs=1) == 5


def test_a_run_that_was_complete_does_nothing_more(tmp_path):
    fit(make(tmp_path, every=5))
    checkpoint = make(tmp_path)
    checkpoint.resume(checkpoint.folder.finished()[-1], 10)
    assert fit(checkpoint) == 0
    assert saved(checkpoint) == [5, 10]


def test_without_a_number_of_steps(tmp_path):
    checkpoint = make(tmp_path, every=4, keep=9)
    checkpoint.set_params({"epochs": 1, "steps": None})
    checkpoint.on_train_begin()
    checkpoint.on_epoch_begin(0)
    for batch in range(9):
        checkpoint.model.updates += 1
        checkpoint.on_train_batch_end(batch)
    assert saved(checkpoint) == [4, 8]
