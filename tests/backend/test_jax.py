import agents
import keras
import numpy as np
import pytest

jax = pytest.importorskip("jax")
if keras.backend.backend() != "jax":
    pytest.skip("another backend is active", allow_module_level=True)

from keras_dreamer.backend.jax import device  # noqa: E402
from keras_dreamer.backend.jax import scan  # noqa: E402

pytestmark = pytest.mark.usefixtures("quick_backend")


def test_scan_is_one_loop_in_the_program():
    def cumulate(x):
        return scan(lambda c, x: (c + x, c * x), 0.0, x, 50)

    x = np.arange(50, dtype="float32")
    assert str(jax.make_jaxpr(cumulate)(x)).count("scan[") == 1
    # d sum_t (x_0 + .. + x_t-1) x_t / dx_k is the sum of all others.
    gradient = jax.grad(lambda x: cumulate(x)[1].sum())(x)
    np.testing.assert_allclose(gradient, x.sum() - x, rtol=1e-6)


def test_a_gpu_has_a_name(monkeypatch):
    class Gpu:
        device_kind = "Tesla T4"

        def __str__(self):
            return "cuda:0"

    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(jax, "devices", lambda: [Gpu(), Gpu()])
    assert device() == "cuda:0 Tesla T4"


class Steps(keras.callbacks.Callback):
    """Remembers where the variables are while `fit` runs."""

    def __init__(self):
        super().__init__()
        self.synced = []
        self.shared = []

    def on_train_batch_end(self, batch, logs=None):
        model = self._model
        self.synced.append(model._jax_state_synced)
        kept = model._jax_state.values()
        self.shared += [
            theirs is ours
            for theirs, ours in zip(kept, model.exchange.state, strict=True)
        ]


def test_our_callbacks_leave_the_state_in_the_running_step():
    """Copying it out and in costs a copy of all weights per update."""
    model = agents.make_agent(
        agents.numbers(3), agents.bounded(2), **agents.SHALLOW
    )
    model.compile()
    steps = Steps()
    dataset = agents.FixedBatches(agents.random_batch(model), steps_per_epoch=3)
    model.fit(dataset, callbacks=[steps], verbose=0)
    assert steps.synced == [False, False, False]
    # Nor are the lists of it copied; what we write there, Keras reads.
    assert steps.shared == [True] * 12
    # One program serves all updates.
    assert int(model.optimizer.iterations) == 3
    assert all(np.isfinite(w).all() for w in model.get_weights())


class Donations(keras.callbacks.Callback):
    """Moves the slow critic and notes whether the old values are gone."""

    def __init__(self):
        super().__init__()
        self.gone = []

    def on_train_batch_end(self, batch, logs=None):
        slow = self._model.networks.slowval.weights
        old = self._model.newest(slow)
        self._model.update_slow_critic(0.02)
        self.gone += [value.is_deleted() for value in old]


def test_the_slow_critic_moves_in_place_within_fit_alone():
    model = agents.make_agent(
        agents.numbers(3), agents.bounded(2), **agents.SHALLOW
    )
    held = model.newest(model.networks.slowval.weights)
    model.update_slow_critic(0.02)
    assert not any(value.is_deleted() for value in held)
    model.compile()
    donations = Donations()
    dataset = agents.FixedBatches(agents.random_batch(model), steps_per_epoch=2)
    model.fit(dataset, callbacks=[donations], verbose=0)
    assert donations.gone == [True] * 2 * len(held)
    assert all(np.isfinite(w).all() for w in model.get_weights())
