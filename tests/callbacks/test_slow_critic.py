import types

import pytest

from keras_dreamer.callbacks.slow_critic import SlowCritic


class Model:
    """Stands in for `Dreamer`: remembers the rates it was asked for."""

    def __init__(self):
        self.rates = []
        self.exchange = types.SimpleNamespace(skipped=False)
        self.update_slow_critic = self.rates.append


def test_moves_once_after_every_update():
    model, callback = Model(), SlowCritic(rate=0.25)
    callback.set_model(model)
    callback.on_train_begin()
    for batch in range(3):
        callback.on_train_batch_begin(batch)
        assert len(model.rates) == batch
        callback.on_train_batch_end(batch, {"loss": 1.0})
    callback.on_epoch_end(0, {})
    assert model.rates == [0.25, 0.25, 0.25]


def test_stays_after_an_update_that_was_skipped():
    model, callback = Model(), SlowCritic(rate=0.25)
    callback.set_model(model)
    model.exchange.skipped = True
    callback.on_train_batch_end(0)
    assert model.rates == []


def test_default_rate_is_the_recipes():
    assert SlowCritic().rate == 0.02


def test_does_not_ask_keras_for_the_model():
    # On JAX that would copy the whole state out of a running `fit`.
    callback = SlowCritic()
    model = types.SimpleNamespace(
        update_slow_critic=lambda rate: None,
        exchange=types.SimpleNamespace(skipped=False),
        jax_state_sync=lambda: pytest.fail("The state was copied."),
    )
    callback.set_model(model)
    callback.on_train_batch_end(0)


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.5])
def test_rate_out_of_range_is_refused(rate):
    with pytest.raises(ValueError, match=rf"\(0, 1\].*rate={rate}.*uses 0.02"):
        SlowCritic(rate)
