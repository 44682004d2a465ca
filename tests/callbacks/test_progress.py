import math
import os
import sys
import types

import pytest

from keras_dreamer.callbacks import progress
from keras_dreamer.callbacks.progress import Progress
from keras_dreamer.callbacks.progress import clock

LOGS = {
    "loss": 1.5,
    "loss/rec/observation": 0.25,
    "episode/return": 21.0,
    "episode/length": 20.0,
    "env_steps": 64000,
    "updates/s": 3.0,
    "env_steps/s": 1500.0,
    "replay_ratio": 511.97,
}


@pytest.fixture
def now(monkeypatch):
    """The time, which tests move on."""
    now = types.SimpleNamespace(value=0.0)
    stub = types.SimpleNamespace(monotonic=lambda: now.value)
    monkeypatch.setattr(progress, "time", stub)
    return now


@pytest.fixture
def terminal(monkeypatch, capsys):
    """Standard output is a terminal of 200 columns, or what is set."""
    size = types.SimpleNamespace(columns=200)
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda self: True)
    stub = types.SimpleNamespace(
        get_terminal_size=lambda: os.terminal_size((size.columns, 24))
    )
    monkeypatch.setattr(progress, "shutil", stub)
    return size


def make(verbose=1, epochs=2, steps=10, ratio=None):
    bar = Progress()
    bar.set_params({"verbose": verbose, "epochs": epochs, "steps": steps})
    bar.set_ratio(ratio)
    bar.on_train_begin()
    bar.on_epoch_begin(0)
    return bar


def ratio_of(updates_left, total_steps=1000):
    return types.SimpleNamespace(
        updates_left=lambda: updates_left, total_steps=total_steps
    )


def test_a_line_an_epoch_of_what_matters(now, capsys):
    bar, logs = make(), dict(LOGS)
    for batch in range(10):
        now.value += 2
        bar.on_train_batch_end(batch, logs)
    bar.on_epoch_end(0, logs)
    # 10 updates are left and take 2 seconds each.
    assert capsys.readouterr().out == (
        "Epoch 1/2  10/10  loss 1.50  return 21.0  64,000 env steps  "
        "0:00:20 left  3.0 updates/s  1,500 env steps/s  ratio 512\n"
    )
    assert logs == LOGS  # All of them reach the other callbacks.


def test_on_a_terminal_the_line_is_live(now, terminal, capsys):
    bar = make()
    bar.on_train_batch_end(0, LOGS)
    first = capsys.readouterr().out
    assert first.startswith("\rEpoch 1/2  1/10  loss 1.50")
    assert "\n" not in first and "? left" in first
    now.value += progress._INTERVAL / 2
    bar.on_train_batch_end(1, LOGS)
    assert capsys.readouterr().out == ""  # Too soon.
    now.value += progress._INTERVAL
    bar.on_train_batch_end(2, {"loss": 1.0})
    bar.on_epoch_end(0, {"loss": 1.0})
    later = capsys.readouterr().out
    assert later.startswith("\rEpoch 1/2  3/10  loss 1.00  return 21.0")
    assert later.count("\n") == 1 and later.endswith("\n")


def test_a_narrow_terminal_gets_whole_parts_of_it(now, terminal, capsys):
    terminal.columns = 60
    bar = make()
    bar.on_train_batch_end(0, LOGS)
    assert capsys.readouterr().out == (
        "\rEpoch 1/2  1/10  loss 1.50  return 21.0  64,000 env steps"
    )
    terminal.columns = 10
    now.value += 1
    bar.on_train_batch_end(1, LOGS)
    # What was longer is overwritten.
    shown = capsys.readouterr().out
    assert shown == "\r" + "Epoch 1/2  2/10".ljust(58)


def test_an_interrupted_line_is_ended(now, terminal, capsys):
    bar = make()
    bar.on_train_batch_end(0, LOGS)
    bar.on_train_end()
    bar.on_train_end()
    assert capsys.readouterr().out.count("\n") == 1


def test_returns_stay_until_there_are_newer_ones(now, capsys):
    bar = make(verbose=2)
    bar.on_train_batch_end(0, LOGS)
    bar.on_epoch_end(0, {**LOGS, "evaluation/return": 30.0})
    nothing = {"episode/return": math.nan, "evaluation/return": math.nan}
    bar.on_epoch_begin(1)
    bar.on_epoch_end(1, {**LOGS, **nothing})
    first, second = capsys.readouterr().out.splitlines()
    for line in first, second:
        assert "return 21.0  evaluation 30.0" in line


def test_a_budget_of_steps_says_how_long_it_takes(now, capsys):
    bar = make(epochs=10**9, ratio=ratio_of(900.0))
    bar.on_train_batch_end(0, LOGS)
    now.value += 4
    bar.on_train_batch_end(1, LOGS)
    bar.on_epoch_end(0, LOGS)
    shown = capsys.readouterr().out
    assert shown.startswith("Epoch 1  2/10") and "  1:00:00 left" in shown


def test_without_an_end_nobody_knows(now, capsys):
    bar = make(steps=None, ratio=ratio_of(math.inf, None))
    for batch in range(3):
        bar.on_train_batch_end(batch, LOGS)
    bar.on_epoch_end(0, LOGS)
    shown = capsys.readouterr().out
    assert shown.startswith("Epoch 1/2  3  loss") and "? left" in shown


def test_silence(now, capsys):
    bar = make(verbose=0)
    bar.on_train_batch_end(0, LOGS)
    bar.on_epoch_end(0)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "seconds, text",
    [(0, "0:00:00"), (3725.9, "1:02:05"), (-5, "0:00:00"), (None, "?")],
)
def test_clock(seconds, text):
    assert clock(seconds) == text
