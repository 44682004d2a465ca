import types

import pytest

from keras_dreamer.callbacks.skip_limit import SkipLimit


def make(limit):
    callback = SkipLimit(limit)
    exchange = types.SimpleNamespace(skipped=False, scalars={})
    model = types.SimpleNamespace(exchange=exchange, stop_training=False)
    callback.set_model(model)
    callback.on_train_begin()
    return callback, model


def play(callback, model, updates):
    """Ends updates: `x` is a skipped one, `.` one that was applied."""
    for update in updates:
        model.exchange.skipped = update == "x"
        callback.on_train_batch_end(0, {})


def test_stops_after_so_many_in_a_row_and_says_why():
    callback, model = make(limit=3)
    play(callback, model, "..xx")
    assert not model.stop_training
    callback.check()
    play(callback, model, "x")
    assert model.stop_training
    nan = float("nan")
    model.exchange.scalars = {"loss": 1.0, "loss/rew": nan, "grad_norm": nan}
    with pytest.raises(
        ValueError,
        match=r"must be finite. Received: 3 updates in a row.*"
        r"\['loss/rew', 'grad_norm'\].*last good update.*learning rate",
    ):
        callback.check()


def test_one_good_update_starts_the_count_again():
    callback, model = make(limit=3)
    play(callback, model, "xx.xx.xx")
    assert not model.stop_training


def test_a_new_fit_starts_the_count_again():
    callback, model = make(limit=2)
    play(callback, model, "x")
    callback.on_train_begin()
    play(callback, model, "x")
    assert not model.stop_training


def test_limit_is_20():
    assert SkipLimit().limit == 20
