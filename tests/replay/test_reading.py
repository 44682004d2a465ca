import numpy as np
import pytest


def test_newest_rows_of_every_stream(small):
    replay = small.replay()
    small.fill(replay, 9)
    batch = replay.read(replay.newest_ids(3))
    assert small.numbers(batch).tolist() == [[6, 7, 8], [1006, 1007, 1008]]


def test_streams_with_too_few_rows_are_left_out(small):
    replay = small.replay()
    small.fill(replay, 4)
    replay.add(small.steps(4), 0)
    batch = replay.read(replay.newest_ids(5))
    assert small.numbers(batch).tolist() == [[0, 1, 2, 3, 4]]
    assert replay.newest_ids(6).shape == (0, 6)


def test_evicted_rows_do_not_count(small):
    # Windows of 5 rows; the newest items start at 3, 4 and 5.
    replay = small.replay(num_envs=1, capacity=3)
    small.fill(replay, 10)
    assert len(replay.newest_ids(7)) == 1
    assert len(replay.newest_ids(8)) == 0


def test_a_batch_is_read_again_as_it_was_drawn(small):
    replay = small.replay()
    small.fill(replay, 20, is_first=lambda t: t % 7 == 0)
    drawn = replay.sample(6)
    read = replay.read(drawn["step_id"])
    assert set(read) == set(drawn)
    for name in ("reward", "is_first", "is_last", "step_id"):
        np.testing.assert_array_equal(read[name], drawn[name])
    for name in ("deter", "stoch"):
        np.testing.assert_array_equal(
            read["context"][name], drawn["context"][name]
        )


def test_reading_leaves_the_queue_and_the_sampler_alone(small):
    one, other = small.replay(), small.replay()
    for replay in (one, other):
        small.fill(replay, 30)
    one.read(one.newest_ids(4))
    assert one.queued == other.queued
    np.testing.assert_array_equal(
        one.sample(9)["step_id"], other.sample(9)["step_id"]
    )


def test_unknown_rows_are_refused(small):
    replay = small.replay()
    small.fill(replay, 6)
    with pytest.raises(ValueError, match="Received: 6, which it does not"):
        replay.read([[5, 6]])
