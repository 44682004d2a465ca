import functools
import json
import re

import agents
import keras
import pytest
from scripted import tiny_config

import keras_dreamer as kd
from keras_dreamer_cli import presets
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
    # A second run in the same folder is refused.
    assert main([*TRAIN, "--logdir", logdir]) == 2
    assert "another run" in capsys.readouterr().err


def test_a_wrong_environment_leaves_no_folder(tmp_path, capsys):
    logdir = tmp_path / "run"
    assert main(["train", "atari:pong", "--logdir", str(logdir)]) == 2
    assert "'gym:<id>', 'dmc:" in capsys.readouterr().err
    assert not logdir.exists()
