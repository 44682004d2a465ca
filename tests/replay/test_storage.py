import gymnasium
import numpy as np
import pytest

from keras_dreamer.replay import Replay


def assert_same_samples(replay, other, rounds=5):
    """Both give the same batches now and after the same further steps."""
    for _ in range(rounds):
        left, right = replay.sample(4), other.sample(4)
        for name in ("reward", "is_first", "is_last", "step_id"):
            np.testing.assert_array_equal(left[name], right[name])
        for name in ("deter", "stoch"):
            np.testing.assert_array_equal(
                left["context"][name], right["context"][name]
            )


@pytest.mark.parametrize("capacity", [20, 1000])
def test_a_loaded_replay_continues_like_the_saved_one(
    small, tmp_path, capacity
):
    replay = small.replay(3, capacity)
    small.fill(replay, 30, is_first=lambda t: t % 7 == 0)
    replay.sample(5)
    replay.save(tmp_path / "replay.npz")
    other = small.replay(3, capacity, seed=5)
    small.fill(other, 11)  # Is replaced.
    other.load(tmp_path / "replay.npz")
    assert len(other) == len(replay)
    assert other.queued == replay.queued
    assert other.nbytes == replay.nbytes
    assert_same_samples(replay, other)
    for stream in range(3):
        for t in range(30, 60):
            replay.add(small.steps(stream * 1000 + t), stream)
            other.add(small.steps(stream * 1000 + t), stream)
        assert_same_samples(replay, other)
    small.numbers(other.sample(10))


def test_an_empty_replay_can_be_saved(small, tmp_path):
    small.replay().save(tmp_path / "replay.npz")
    other = small.replay()
    other.load(tmp_path / "replay.npz")
    small.fill(other, 5)
    assert len(other) == 2


def test_the_file_is_a_plain_npz(small, tmp_path):
    replay = small.replay(1, dtype="bfloat16")
    small.fill(replay, 10)
    replay.save(tmp_path / "replay.npz")
    with np.load(tmp_path / "replay.npz", allow_pickle=False) as file:
        assert file["row/reward"].tolist() == [t / 2 for t in range(10)]
        assert file["row/context/deter"].dtype == np.uint16
        assert file["row/context/deter"].shape == (10, 2)
    assert [p.name for p in tmp_path.iterdir()] == ["replay.npz"]


@pytest.mark.parametrize(
    "saved, loaded", [("float32", "bfloat16"), ("bfloat16", "float32")]
)
def test_deter_is_cast_between_dtypes(small, tmp_path, saved, loaded):
    replay = small.replay(1, dtype=saved)
    small.fill(replay, 9)
    replay.save(tmp_path / "replay.npz")
    other = small.replay(1, dtype=loaded)
    other.load(tmp_path / "replay.npz")
    deter = other.sample(3)["context"]["deter"]
    assert deter.dtype.name == loaded
    expected = replay.sample(3)["context"]["deter"].astype("float32")
    np.testing.assert_array_equal(deter.astype("float32"), expected)


def test_a_smaller_capacity_keeps_the_newest_items(small, tmp_path):
    replay = small.replay(1)
    small.fill(replay, 50)
    replay.save(tmp_path / "replay.npz")
    other = small.replay(1, capacity=10, online=False)
    other.load(tmp_path / "replay.npz")
    assert len(other) == 10 and other.queued == 0
    assert other.nbytes < replay.nbytes
    start = small.numbers(other.sample(300))[:, 0]
    assert set(start) == set(range(36, 46))


def test_refuses_a_file_of_other_sizes(small, tmp_path):
    path = tmp_path / "replay.npz"
    small.replay(2).save(path)
    other = small.replay(3, batch_length=5, deter=4, classes=6)
    with pytest.raises(ValueError, match="same number of env") as error:
        other.load(path)
    message = str(error.value)
    assert "num_envs: 3 here, 2 in the file" in message
    assert "length: 6 here, 5 in the file" in message
    assert "context/deter" in message and "context/stoch" in message
    assert "reward" not in message


def test_refuses_a_file_of_other_spaces(small, tmp_path):
    path = tmp_path / "replay.npz"
    small.replay(2).save(path)
    spaces = gymnasium.spaces.Dict({"mode": gymnasium.spaces.Discrete(3)})
    envs = small.envs(2, observation=spaces)
    other = Replay(small.Config(), envs, capacity=10, dtype="float32")
    message = "observation/mode: {.*} here, None in the file; observation/obs"
    with pytest.raises(ValueError, match=message):
        other.load(path)


def test_a_broken_file_changes_nothing(small, tmp_path):
    path = tmp_path / "replay.npz"
    replay = small.replay(2)
    small.fill(replay, 9)
    replay.save(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(Exception, match="zip"):
        replay.load(path)
    assert len(replay) == 10
    small.numbers(replay.sample(10))
