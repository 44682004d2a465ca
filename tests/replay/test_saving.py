import numpy as np
import pytest

import keras_dreamer as kd


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_opens_without_environments(small, tmp_path, kind):
    replay = small.replay(2, dtype="bfloat16")
    small.fill(replay, 30)
    if kind == "file":
        replay.save(tmp_path / "replay.npz")
        path = tmp_path / "replay.npz"
    else:
        path = tmp_path / "replay"
        path.mkdir()
        replay.save_changes(path)
    other = kd.replay.Replay.open(
        path, small.Config(), capacity=60, dtype="bfloat16"
    )
    assert other.observation_space == small.box
    assert other.action_space == small.box
    assert (other.num_streams, other.capacity) == (2, 60)
    assert len(other) == len(replay) == 52
    for _ in range(3):
        batch, expected = other.sample(8), replay.sample(8)
        np.testing.assert_array_equal(batch["step_id"], expected["step_id"])
        np.testing.assert_array_equal(
            small.numbers(batch), small.numbers(expected)
        )


def test_opening_names_other_sizes(small, tmp_path):
    small.replay(2).save(tmp_path / "replay.npz")
    with pytest.raises(ValueError, match="length: 9 here, 5 in the file"):
        kd.replay.Replay.open(
            tmp_path / "replay.npz",
            small.Config(batch_length=8),
            dtype="float32",
        )


def test_a_replay_larger_than_its_memory_is_loaded_into_files(small, tmp_path):
    replay = small.replay(2)
    small.fill(replay, 30)
    replay.save(tmp_path / "replay.npz")
    mapped = small.replay(2, directory=tmp_path / "mapped")
    small.fill(mapped, 3)
    mapped.load(tmp_path / "replay.npz")
    np.testing.assert_array_equal(
        mapped.sample(50)["step_id"], replay.sample(50)["step_id"]
    )
    (folder,) = (tmp_path / "mapped").iterdir()
    used = sum(path.stat().st_size for path in folder.glob("*.rows"))
    assert replay.nbytes <= used <= 1.5 * replay.nbytes
