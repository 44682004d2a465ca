import pathlib

import agents
import gymnasium
import numpy as np
import pytest
import runs
from scripted import tiny_config

import keras_dreamer as kd
from keras_dreamer_cli.plots import recording

GOLDEN = pathlib.Path(__file__).parents[2] / "golden" / "portable_run"


def test_windows_by_hand():
    # Stretches: 0-2 and 3-6 of row 0, all 7 steps of row 1.
    is_first = np.zeros((2, 7), bool)
    is_first[0, [0, 3]] = is_first[1, 0] = True
    found, steps = recording.windows(is_first, 3, 9)
    assert steps == 3
    assert found == [(0, 0), (0, 3), (1, 0), (1, 3)]
    # Two of them, the first and the last.
    assert recording.windows(is_first, 3, 2)[0] == [(0, 0), (1, 3)]
    # No longer than the longest stretch.
    assert recording.windows(is_first, 64, 9) == ([(1, 0)], 7)


def test_a_stretch_may_begin_before_the_recording():
    found, steps = recording.windows(np.zeros((1, 5), bool), 5, 1)
    assert (found, steps) == ([(0, 0)], 5)


def test_the_agents_own_file_comes_first(tmp_path):
    older, newer = tmp_path / "1", tmp_path / "2"
    for folder in (older, newer):
        folder.mkdir()
        (folder / "agent.keras").touch()
    found = recording.agent_file(tmp_path, [older, newer])
    assert found == newer / "agent.keras"
    (tmp_path / "agent.keras").touch()
    found = recording.agent_file(tmp_path, [older, newer])
    assert found == tmp_path / "agent.keras"


def test_a_run_without_agent_is_refused(tmp_path):
    with pytest.raises(ValueError, match="A saved agent is required"):
        recording.agent_file(tmp_path, [])


def test_newest_takes_what_is_there():
    class Replay:
        def newest_ids(self, length):
            return np.zeros((9 if length <= 40 else 0, length))

    # 512, 256, 128 and 64 rows are more than there are.
    assert recording.newest(Replay(), 1).shape == (4, 33)


def test_an_empty_replay_is_refused():
    class Replay:
        def newest_ids(self, length):
            return np.zeros((0, length))

    with pytest.raises(ValueError, match="an empty one"):
        recording.newest(Replay(), 1)


def test_without_checkpoint_episodes_are_played(monkeypatch):
    monkeypatch.setattr(recording, "ROWS", 20)
    env = gymnasium.make("CartPole-v1")
    with agents.quick_backend():
        model = kd.Dreamer(
            env.observation_space,
            env.action_space,
            tiny_config(action_repeat=1),
        )
        replay = recording.play(runs.make_run(env="gym:CartPole-v1"), model)
    ids = replay.newest_ids(21)
    assert ids.shape == (recording.STREAMS, 21)
    batch = replay.read(ids)
    assert batch["reward"].max() == 1.0


def test_playing_needs_an_environment():
    with pytest.raises(ValueError, match="--env"):
        recording.play(runs.make_run(env=None), None)


def test_a_checkpoint_is_enough():
    run = runs.make_run(GOLDEN, env=None)
    with agents.quick_backend():
        found = recording.inspect(run)
    assert "checkpoint 00000001" in found.source
    rows = recording.WINDOWS
    leaves = found.model.observation_leaves
    assert set(found.futures.truth) == set(leaves)
    assert found.futures.reward.shape == found.windows.reward.shape
    assert len(found.futures.reward) == rows
    assert found.futures.valid.all() and found.windows.valid.all()
    for key in leaves:
        # All futures are those of one window, and not all the same.
        truth, guess = found.futures.truth[key], found.futures.prediction[key]
        np.testing.assert_array_equal(truth, np.repeat(truth[:1], rows, 0))
        assert np.ptp(guess, axis=0).max() > 0
    assert np.isfinite(found.returns.imagined).all()
    np.testing.assert_allclose(found.usage.share.sum(-1), 1, rtol=1e-5)
