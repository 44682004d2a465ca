import json
import types

import numpy as np
import pytest

import keras_dreamer as kd
from keras_dreamer.scores import Scores
from keras_dreamer_cli import evaluate
from keras_dreamer_cli import folder


@pytest.fixture
def played(monkeypatch, tmp_path):
    """A run on disk; collects what is called instead of playing."""
    settings = {
        "env": "gym:A-v0",
        "envs": 4,
        "config": {"action_repeat": 2},
    }
    (tmp_path / folder.SETTINGS).write_text(json.dumps(settings))
    (tmp_path / folder.AGENT).touch()
    calls = types.SimpleNamespace(logdir=tmp_path, blind=False)

    def make(*args, **kwargs):
        if calls.blind and "render_mode" in kwargs:
            raise TypeError("unexpected keyword argument")
        calls.make = (args, kwargs)
        return types.SimpleNamespace(close=lambda: None)

    def play(*args, **kwargs):
        calls.evaluate = (args, kwargs)
        return Scores(np.array([8.0, 12.0]), np.array([3, 4]))

    monkeypatch.setattr(kd.Policy, "load", lambda file: file.name)
    monkeypatch.setattr(kd.envs, "make", make)
    monkeypatch.setattr(kd, "evaluate", play)
    return calls


def run(calls, **options):
    defaults = {"episodes": 2, "deterministic": True, "record": None, "seed": 5}
    command = {**defaults, "logdir": calls.logdir, **options}
    evaluate.run(types.SimpleNamespace(**command))


def test_plays_with_the_saved_agent(played, capsys):
    run(played)
    assert played.make == (
        ("gym:A-v0",),
        {"num_envs": 2, "action_repeat": 2, "seed": 5},
    )
    (policy, _, episodes), options = played.evaluate
    assert (policy, episodes) == (folder.AGENT, 2)
    assert options == {"deterministic": True, "record": None, "seed": 5}
    first, last = capsys.readouterr().out.splitlines()
    assert first == f"Playing with {played.logdir / folder.AGENT}"
    assert last == (
        "gym:A-v0: return 10.0 ± 25.4 (95 % of the mean) over 2 episodes, "
        "from 8.0 to 12.0, length 3.5"
    )


def test_a_video_needs_a_renderer(played):
    run(played, record="video.gif")
    assert played.make[1]["render_mode"] == "rgb_array"
    assert played.evaluate[1]["record"] == "video.gif"


def test_without_a_renderer_the_note_is_left_to_the_video(played):
    played.blind = True
    run(played, record="video.gif")
    assert "render_mode" not in played.make[1]
    assert played.evaluate[1]["record"] == "video.gif"


def test_the_newest_agent_of_a_run(tmp_path):
    with pytest.raises(ValueError, match="first checkpoint.*--resume"):
        evaluate.agent(tmp_path)
    for name in ("00000002", "00000003", "00000004.unfinished"):
        (tmp_path / "checkpoints" / name).mkdir(parents=True)
    newest = tmp_path / "checkpoints" / "00000003" / "agent.keras"
    assert evaluate.agent(tmp_path) == newest
    (tmp_path / "agent.keras").touch()
    assert evaluate.agent(tmp_path) == tmp_path / "agent.keras"
