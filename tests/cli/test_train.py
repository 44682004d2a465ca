import functools
import json
import os
import re
import shlex
import signal

import agents
import keras
import pytest
from scripted import tiny_config

import keras_dreamer as kd
from keras_dreamer_cli import presets
from keras_dreamer_cli import train
from keras_dreamer_cli.main import main

pytest.importorskip("tyro")
pytest.importorskip("tensorboardX")
TRAIN = "train gym:CartPole-v1 --steps 150 --envs 2 --seed 3 --ratio 6".split()
TRAIN += ["--evaluate-every", "20"]


@pytest.fixture
def tiny(monkeypatch):
    """Replaces the preset by an agent that trains in seconds."""
    fields = {**tiny_config().to_dict(), "action_repeat": 1}
    monkeypatch.setitem(presets.PRESETS, "gym-small", (fields, 2, 20))
    # Its settings would stay with this process.
    monkeypatch.setattr(kd, "configure_runtime", lambda: None)
    jit = keras.backend.backend() == "jax"
    monkeypatch.setattr(
        kd.Dreamer,
        "compile",
        functools.partialmethod(kd.Dreamer.compile, jit_compile=jit),
    )
    with agents.quick_backend():
        yield


@pytest.mark.slow
def test_train_then_evaluate(tiny, tmp_path, capsys):
    logdir = str(tmp_path / "run")
    assert main([*TRAIN, "--logdir", logdir]) == 0
    printed = capsys.readouterr().out
    for text in ("parameters", "2 environments", "replay up to", "left"):
        assert text in printed
    # The rows of resets are agent steps of the budget, not env steps.
    saved = re.search(r"agent\.keras after (\d+) env steps\.\n$", printed)
    assert 100 < int(saved[1]) < 150
    settings = json.loads((tmp_path / "run" / "settings.json").read_text())
    assert (settings["env"], settings["seed"]) == ("gym:CartPole-v1", 3)
    assert settings["config"]["env_steps"] == 150
    log = (tmp_path / "run" / "log.jsonl").read_text().splitlines()
    assert json.loads(log[0])["config"] == settings["config"]
    assert any(json.loads(line).get("evaluation/return") for line in log)
    assert main(["evaluate", logdir, "--episodes", "2"]) == 0
    assert "over 2 episodes" in capsys.readouterr().out
    # A second run in the same folder is refused, and one without steps.
    assert main([*TRAIN, "--logdir", logdir]) == 2
    assert "another run" in capsys.readouterr().err
    assert main(["train", "--resume", "--logdir", logdir]) == 2
    assert "all of its 150 env steps" in capsys.readouterr().err
    assert (tmp_path / "run" / "agent.keras").exists()


def interrupt(callback, epoch, logs=None):
    """Stands in for `Report`: Ctrl-C at the end of the first epoch."""
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.slow
def test_ctrl_c_then_resume(tiny, monkeypatch, tmp_path, capsys):
    run = tmp_path / "a run"
    logdir = ["--logdir", str(run)]
    with monkeypatch.context() as patch:
        patch.setattr(train.Report, "on_epoch_end", interrupt)
        assert main([*TRAIN, *logdir]) == 130
    *_, said, advice = capsys.readouterr().out.splitlines()
    assert re.match(r"Interrupted after \d+ env steps, saved in .*0001", said)
    resume = shlex.split(advice)[1:]
    assert resume == ["train", "--resume", *logdir]
    # The run has an agent, and goes on only as what it is.
    assert main(["evaluate", str(run), "--episodes", "1"]) == 0
    assert "checkpoints/00000001" in capsys.readouterr().out
    assert main([*resume, "--size", "1m", "--seed", "4"]) == 2
    assert "seed: 4 here, 3 in the run; size" in capsys.readouterr().err
    (run / "agent.keras").touch()  # As if it had come to its end.
    with monkeypatch.context() as patch:
        patch.setattr(train.Report, "on_epoch_end", interrupt)
        assert main([*resume, "--steps", "900", "--ratio", "9"]) == 130
    printed = capsys.readouterr().out
    assert "Going on after 20 updates" in printed
    assert "900 env steps" in printed and "replay ratio 9" in printed
    settings = json.loads((run / "settings.json").read_text())
    assert (settings["seed"], settings["config"]["env_steps"]) == (3, 900)
    assert "00000002" in printed.splitlines()[-2]
    assert not (run / "agent.keras").exists()


def test_what_ctrl_c_says_before_the_first_checkpoint():
    assert train.interruption("runs/a", 0, None) == (
        "Interrupted after 0 env steps, nothing to save yet. Go on with\n"
        "  keras-dreamer train --resume --logdir runs/a"
    )


def test_resume_needs_a_run(tmp_path, capsys):
    assert main(["train", "--resume", "--logdir", str(tmp_path)]) == 2
    assert "The folder of a run is required" in capsys.readouterr().err
    assert main(["train", "--resume"]) == 2
    assert "neither an environment nor --logdir" in capsys.readouterr().err


def test_a_wrong_environment_leaves_no_folder(tmp_path, capsys):
    logdir = tmp_path / "run"
    assert main(["train", "atari:pong", "--logdir", str(logdir)]) == 2
    assert "'gym:<id>', 'dmc:" in capsys.readouterr().err
    assert not logdir.exists()
