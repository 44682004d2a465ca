"""Updates that are not finite change nothing."""

import agents
import keras
import numpy as np
import pytest
from helpers import to_numpy
from keras import ops
from scripted import tiny_config

from keras_dreamer.models.dreamer import Dreamer

pytestmark = pytest.mark.usefixtures("quick_backend")


class Kinked(Dreamer):
    """Adds to the loss what has no gradient at `kink == 0`.

        total + sqrt(|w - stop_gradient(w)|^2 + kink)

    `kink` is the reward of the context row, which nothing else reads.
    """

    def loss_terms(self, batch, noise, training=True):
        update = super().loss_terms(batch, noise, training)
        weight = self.trainable_variables[0]
        change = weight - ops.stop_gradient(weight)
        kink = ops.convert_to_tensor(batch["reward"])[0, 0]
        extra = ops.sqrt(ops.sum(ops.square(change)) + kink)
        return update._replace(total=update.total + extra)


def make(**kwargs):
    model = Kinked(
        agents.numbers(3), agents.bounded(2), tiny_config(lr=1e-2, warmup=0)
    )
    model.compile(**kwargs)
    return model


@pytest.fixture(scope="module")
def model():
    # XLA takes longer than TensorFlow to compile.
    return make(jit_compile=keras.backend.backend() == "jax")


def batch_of(model, seed=0, **first):
    """Returns a batch; `first` sets the first entries of some arrays."""
    batch = agents.random_batch(model, seed)
    batch["reward"][0, 0] = 1.0
    for name, (index, value) in first.items():
        batch[name][index] = value
    return batch


BAD = {
    "loss": {"reward": ((1, 2), np.nan)},
    "gradients": {"reward": ((0, 0), 0.0)},
}


def state(model):
    """Returns all that an update may change, but for the noise."""
    noise = model.noise_seed.state
    variables = [v for v in model.weights if v is not noise]
    variables += model.optimizer.variables
    return {v.path: to_numpy(v).copy() for v in variables}


class Recorder:
    """Stands in for a replay."""

    def __init__(self):
        self.updates = []

    def update(self, step_id, latents):
        self.updates.append(step_id)


def train(model, *batches, epochs=1, callbacks=()):
    """Trains on the batches; returns the logs and the times of writing."""
    for batch in batches:
        batch["step_id"] = np.arange(15).reshape(3, 5)
    dataset = agents.FixedBatches(*batches, steps_per_epoch=len(batches))
    dataset.replay = Recorder()
    history = model.fit(
        dataset, epochs=epochs, verbose=0, callbacks=[*callbacks]
    )
    return history.history, len(dataset.replay.updates)


def check_skipped(model, kind):
    good = batch_of(model)
    train(model, good)
    before = state(model)
    logs, written = train(model, batch_of(model, **BAD[kind]))
    after = state(model)
    assert before.keys() == after.keys() and len(before) > 100
    for path, value in before.items():
        np.testing.assert_array_equal(after[path], value, err_msg=path)
    assert logs["skipped"] == [1] and written == 0
    # The next good one is an update like any other.
    logs, written = train(model, good, batch_of(model, **BAD[kind]), good)
    assert logs["skipped"] == [1] and written == 2
    assert np.isfinite([logs[name] for name in logs]).all()
    iterations = int(to_numpy(model.optimizer.iterations))
    assert iterations == int(after["laprop/iteration"]) + 2
    changed = [np.any(v != after[path]) for path, v in state(model).items()]
    assert np.mean(changed) > 0.9


@pytest.mark.parametrize("kind", BAD)
def test_a_skipped_update_changes_nothing(model, kind):
    check_skipped(model, kind)


# Other ways to compile, where they don't take minutes.
OTHER = {"tensorflow": ["jit_compile", "run_eagerly"]}


@pytest.mark.slow
@pytest.mark.parametrize("how", OTHER.get(keras.backend.backend(), []))
def test_however_the_update_is_compiled(how):
    model = make(**{how: True})
    for kind in BAD:
        check_skipped(model, kind)


def test_means_are_those_of_the_updates_that_were_applied(model):
    logs, _ = train(model, batch_of(model), batch_of(model, **BAD["loss"]))
    assert np.isfinite([logs[name] for name in logs]).all()
    logs, _ = train(model, batch_of(model, **BAD["loss"]))
    assert logs["skipped"] == [1] and np.isnan(logs["loss"])


class Count(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.updates = self.ends = 0

    def on_train_batch_end(self, batch, logs=None):
        self.updates += 1

    def on_train_end(self, logs=None):
        self.ends += 1


def test_twenty_in_a_row_end_the_run(model):
    before, count = state(model), Count()
    bad = batch_of(model, **BAD["loss"])
    with pytest.raises(
        ValueError, match=r"20 updates in a row.*'loss/rew'.*learning rate"
    ):
        train(model, bad, epochs=30, callbacks=[count])
    # Other callbacks, such as those that save, saw a normal end.
    assert (count.updates, count.ends) == (20, 1)
    for path, value in state(model).items():
        np.testing.assert_array_equal(before[path], value, err_msg=path)
    _, written = train(model, batch_of(model))
    assert written == 1


def test_nineteen_in_a_row_do_not(model):
    good, bad = batch_of(model), batch_of(model, **BAD["gradients"])
    logs, _ = train(model, *[bad] * 19, good, *[bad] * 19)
    assert logs["skipped"] == [38]
