import numpy as np
import pytest


def flags_of(*lengths):
    """Returns `is_first` and `is_last` of episodes of some numbers of rows."""
    first = [t == 0 for length in lengths for t in range(length)]
    last = [t == length - 1 for length in lengths for t in range(length)]
    return {"is_first": first.__getitem__, "is_last": last.__getitem__}


def rewards(replay):
    # Row t of stream s has the reward s * 500 + t / 2.
    return [episode["reward"].tolist() for episode in replay.episodes()]


def test_whole_episodes_come_stream_by_stream(small):
    replay = small.replay(2)
    small.fill(replay, 9, **flags_of(3, 4, 5))
    first, second = [0.0, 0.5, 1.0], [1.5, 2.0, 2.5, 3.0]
    # The third is still running.
    assert rewards(replay) == [
        first,
        second,
        [500 + x for x in first],
        [500 + x for x in second],
    ]
    episode = next(replay.episodes())
    assert set(episode) == {
        "observation",
        "action",
        "reward",
        "is_first",
        "is_last",
        "is_terminal",
    }
    assert episode["action"]["action"].tolist() == [[0, 0], [-1, -1], [-2, -2]]
    assert episode["is_last"].tolist() == [False, False, True]


def test_an_abandoned_episode_ends_before_the_next_reset(small):
    replay = small.replay(1)
    flags = flags_of(3, 1, 2)
    # Its last row was never marked; the single row is no episode.
    flags["is_last"] = [False, False, False, False, False, True].__getitem__
    small.fill(replay, 6, **flags)
    assert rewards(replay) == [[0.0, 0.5, 1.0], [2.0, 2.5]]


def test_what_was_evicted_in_part_is_left_out(small):
    replay = small.replay(1, capacity=4)
    small.fill(replay, 12, **flags_of(6, 6))
    # Items start at 4 .. 7: the first episode has lost its beginning.
    assert rewards(replay) == [[3.0, 3.5, 4.0, 4.5, 5.0, 5.5]]


def test_nothing_held_has_no_episodes(small):
    assert rewards(small.replay(2)) == []


def recorded(small, number, rows):
    index = np.arange(rows)
    return small.steps(
        number + index, index == 0, index == rows - 1, context=False
    )


def test_recorded_episodes_go_to_the_shortest_stream(small):
    replay = small.replay(2)
    for number, rows in enumerate([6, 4, 3, 2]):
        replay.add_episode(recorded(small, 100 * number, rows))
    starts = [100 * number / 2 for number in (0, 3, 1, 2)]
    assert [values[0] for values in rewards(replay)] == starts
    batch = replay.sample(4)
    assert not batch["context"]["deter"].any()
    # Rows that were not just played are not served before others.
    assert replay.queued == 0


def test_running_episodes_are_not_interrupted(small):
    replay = small.replay(1)
    small.fill(replay, 2)
    with pytest.raises(ValueError, match="stream 0, whose last.*before the Dr"):
        replay.add_episode(recorded(small, 100, 3))
    replay.add(small.steps(2, is_last=True), 0)
    replay.add_episode(recorded(small, 100, 3))
