import pytest

from keras_dreamer.callbacks.progress import Progress

LOGS = {
    "loss": 1.5,
    "loss/rec/observation": 0.25,
    "episode/return": 21.0,
    "episode/length": 20.0,
    "env_steps": 64,
    "updates/s": 3.0,
}


@pytest.mark.parametrize("verbose", [1, 2])
def test_shows_the_few_that_matter(verbose, capsys):
    bar = Progress()
    bar.set_params({"verbose": verbose, "epochs": 2, "steps": 1})
    bar.on_epoch_begin(0)
    logs = dict(LOGS)
    bar.on_train_batch_begin(0)
    bar.on_train_batch_end(0, logs)
    bar.on_epoch_end(0, logs)
    printed = capsys.readouterr().out
    for text in ("Epoch 1/2", "loss: 1.5", "episode/return: 21", "env_steps"):
        assert text in printed
    assert "updates/s: 3" in printed
    assert "rec" not in printed and "length" not in printed
    assert logs == LOGS  # All of them reach the other callbacks.


def test_logs_may_be_missing(capsys):
    bar = Progress()
    bar.set_params({"verbose": 1, "epochs": 1, "steps": 1})
    bar.on_epoch_begin(0)
    bar.on_train_batch_end(0)
    bar.on_epoch_end(0, {"loss": 2.0})
    assert "loss: 2.0" in capsys.readouterr().out
