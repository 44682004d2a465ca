import types

import numpy as np
import pytest
from keras import ops

from keras_dreamer.callbacks.latent_write_back import LatentWriteBack


class Replay:
    """Stands in for the replay: remembers its updates."""

    def __init__(self):
        self.updates = []

    def update(self, step_id, latents):
        self.updates.append((step_id, latents))


class Model:
    """Stands in for `Dreamer`: only what the callback looks at."""

    def __init__(self, context=1):
        self.config = types.SimpleNamespace(replay_context=context)
        self.exchange = types.SimpleNamespace(
            step_id=None, latents=None, skipped=False
        )


def make(context=1):
    model, replay, callback = Model(context), Replay(), LatentWriteBack()
    callback.set_model(model)
    callback.set_dataset(types.SimpleNamespace(replay=replay))
    return model, replay, callback


STEP_ID = np.array([[10, 11, 12], [70, 71, 72]])  # K + T = 1 + 2 rows.
DETER = np.arange(8, dtype="float32").reshape(2, 2, 2)
STOCH = np.arange(4, dtype="int32").reshape(2, 2, 1)


def latents():
    """Returns what a training step leaves."""
    return {
        "deter": ops.convert_to_tensor(DETER),
        "stoch": ops.convert_to_tensor(STOCH),
    }


def test_writes_the_latents_of_the_trained_rows():
    model, replay, callback = make()
    model.exchange.step_id = STEP_ID
    model.exchange.latents = latents()
    callback.on_train_batch_begin(0)
    assert not replay.updates
    callback.on_train_batch_end(0, {"loss": 0.0})
    [(step_id, written)] = replay.updates
    assert step_id.tolist() == [[11, 12], [71, 72]]
    assert {name: type(x) for name, x in written.items()} == {
        "deter": np.ndarray,
        "stoch": np.ndarray,
    }
    np.testing.assert_array_equal(written["deter"], DETER)
    np.testing.assert_array_equal(written["stoch"], STOCH)


def test_without_context_all_rows_are_trained():
    model, replay, callback = make(context=0)
    model.exchange.step_id = STEP_ID[:, 1:]
    model.exchange.latents = latents()
    callback.on_train_batch_end(0)
    assert replay.updates[0][0].tolist() == [[11, 12], [71, 72]]


def test_batch_without_step_ids_is_left_alone():
    model, replay, callback = make()
    model.exchange.latents = latents()
    callback.on_train_batch_end(0)
    assert not replay.updates


def test_latents_of_a_skipped_update_are_not_written():
    model, replay, callback = make()
    model.exchange.step_id = STEP_ID
    model.exchange.latents = {"deter": DETER, "stoch": STOCH}
    model.exchange.skipped = True
    callback.on_train_batch_end(0)
    assert not replay.updates


def test_dataset_without_a_replay_is_left_alone():
    model, _, callback = make()
    callback.set_dataset(types.SimpleNamespace(replay=None))
    model.exchange.step_id = STEP_ID
    callback.on_train_batch_end(0)


def test_does_not_ask_keras_for_the_model():
    # On JAX that would copy the whole state out of a running `fit`.
    model, replay, callback = make()
    model.jax_state_sync = lambda: pytest.fail("The state was copied.")
    model.exchange.step_id = STEP_ID
    model.exchange.latents = latents()
    callback.on_train_batch_end(0)
    assert len(replay.updates) == 1
