"""Random episodes, environments and faults: what is stored, what is sampled."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from scripted import Puppet
from scripted import Scripted
from scripted import expected_rows

import keras_dreamer as kd
from keras_dreamer.replay.pool import split_ids
from keras_dreamer.replay.pool import step_ids

FLAGS = ("is_first", "is_last", "is_terminal")


class Mortal(Scripted):
    """Breaks after so many steps, its life."""

    def __init__(self, number, lengths, life):
        super().__init__(number, lengths)
        self.life = life

    def step(self, action):
        self.life -= 1
        if self.life < 0:
            raise RuntimeError("old age")
        return super().step(action)


class Recorded(kd.replay.Replay):
    """Keeps every row that was added, also those that it drops."""

    def __init__(self, config, envs, *args, **kwargs):
        super().__init__(config, envs, *args, **kwargs)
        self.added = [[] for _ in range(envs.num_envs)]
        self.order = []

    def add_batch(self, steps, streams):
        super().add_batch(steps, streams)
        for index, stream in enumerate(streams):
            row = {name: steps[name][index] for name in ("reward", *FLAGS)}
            [observation] = steps["observation"].values()
            row["observation"] = observation[index].tolist()
            self.added[stream].append(row)
            self.order.append(int(stream))


def collect(num_envs, lengths, lives, length, capacity, steps):
    """Returns a replay that a driver has filled."""
    numbers = itertools.count()

    def factory():
        number = next(numbers)
        return Mortal(number, lengths, lives[number % len(lives)])

    envs = kd.envs.make(factory, num_envs, on_env_error="restart")
    config = kd.Config(
        deter=2, blocks=2, stoch=1, classes=7, batch_length=length - 1
    )
    replay = Recorded(config, envs, capacity, dtype="float32")
    driver = kd.Driver(envs, Puppet(envs), replay)
    while driver.step < steps:
        driver.advance(steps - driver.step)
    return replay, driver


def expected(stream, added, lengths, lives):
    """Returns the rows that an environment and those after it must give.

    The rows say the numbers of the environments that came in its place.
    """
    rows, number = [], stream
    while len(rows) < len(added):
        left = lives[number % len(lives)]
        for row in expected_rows(number, len(added), lengths):
            left -= not row["is_first"]
            if left < 0:
                break
            rows.append(row)
        if len(rows) < len(added):
            fresh = int(added[len(rows)]["observation"][0])
            assert fresh > number
            number = fresh
    return rows[: len(added)]


def items_in_order(order, length, capacity):
    """Returns the (stream, start) of the windows that must be held."""
    rows, items = {}, []
    for stream in order:
        rows[stream] = rows.get(stream, 0) + 1
        if rows[stream] >= length:
            items.append((stream, rows[stream] - length))
    return items[-capacity:]


def check_rules(rows):
    """Whatever happens, flags obey these rules."""
    first, last, terminal = (
        np.array([bool(row[name]) for row in rows]) for name in FLAGS
    )
    assert first[0]
    assert not (first & last).any()
    assert not (terminal & ~last).any()
    assert first[1:][last[:-1]].all()
    assert not np.array([row["reward"] for row in rows])[first].any()


def check_episodes(driver, rows):
    """Whole episodes are told with their returns, broken ones are not."""
    told = [
        [(e.length, e.episode_return) for e in driver.episodes if e.stream == n]
        for n in range(len(rows))
    ]
    for stream, own in enumerate(rows):
        whole, episode = [], []
        for row in own:
            episode = [row] if row["is_first"] else [*episode, row]
            if row["is_last"]:
                total = sum(row["reward"] for row in episode)
                whole.append((len(episode) - 1, total))
        assert told[stream] == whole


def check_windows(replay, rows):
    """Windows hold the rows of their ids and say where they are cut."""
    batch = replay.sample(8)
    streams, places = split_ids(batch["step_id"])
    for index, (stream, own) in enumerate(zip(streams, places, strict=True)):
        window = [rows[stream[0]][place] for place in own]
        first, last = (
            np.array([row[name] for row in window])
            for name in ("is_first", "is_last")
        )
        last[:-1] |= first[1:]
        first[0] = True
        expected = {
            "is_first": first,
            "is_last": last,
            "is_terminal": [row["is_terminal"] for row in window],
            "reward": [row["reward"] for row in window],
        }
        for name, values in expected.items():
            np.testing.assert_array_equal(batch[name][index], values)
        np.testing.assert_array_equal(
            batch["observation"]["observation"][index],
            [row["observation"] for row in window],
        )


def check_items(replay, items):
    """First in, first out, and everything that is in can be sampled."""
    assert len(replay) == len(items)
    replay.sample(len(replay.order))  # What is queued comes first.
    # A chance of e^-40 for each to be missed.
    drawn = split_ids(replay.sample(40 * len(items))["step_id"][:, 0])
    drawn = zip(*(part.tolist() for part in drawn), strict=True)
    assert set(drawn) == set(items)


def stored(replay, stream):
    """Returns which rows are held, and their latents."""
    places = np.arange(len(replay.added[stream]))
    row = replay._pool.locate(step_ids(stream, places))
    arrays = replay._pool.arrays
    names = ("context/deter", "context/stoch")
    return row >= 0, np.concatenate([arrays[name][row] for name in names], 1)


def check_write_back(replay):
    """Latents land in the trained rows and nowhere else."""
    streams = range(len(replay.added))
    before = [stored(replay, stream) for stream in streams]
    ids = replay.sample(3)["step_id"][:, 1:]
    value = 1000 + np.arange(ids.size).reshape(*ids.shape, 1)
    replay.update(ids, {"deter": value.repeat(2, -1), "stoch": value % 7})
    written = dict(zip(ids.flat, value.flat, strict=True))  # The last counts.
    for stream, (held, latents) in zip(streams, before, strict=True):
        for place in np.flatnonzero(held):
            new = written.get(step_ids(stream, place).item())
            if new is not None:
                latents[place] = new, new, new % 7
        _, after = stored(replay, stream)
        np.testing.assert_array_equal(after[held], latents[held])


@pytest.mark.filterwarnings("ignore:Environment . is replaced")
@settings(max_examples=40, derandomize=True, deadline=None)
@given(
    num_envs=st.integers(1, 4),
    lengths=st.lists(st.integers(1, 7), min_size=1, max_size=5).map(tuple),
    lives=st.lists(st.integers(1, 20), min_size=1, max_size=4),
    length=st.integers(3, 7),
    capacity=st.integers(1, 60),
    steps=st.integers(1, 100),
)
def test_rows_windows_and_latents(
    num_envs, lengths, lives, length, capacity, steps
):
    replay, driver = collect(num_envs, lengths, lives, length, capacity, steps)
    rows = [own for own in replay.added if own]
    for stream, own in enumerate(rows):
        check_rules(own)
        assert own == expected(stream, own, lengths, lives)
    check_episodes(driver, rows)
    items = items_in_order(replay.order, length, capacity)
    assert len(replay) == len(items)
    if items:
        check_windows(replay, rows)
        check_items(replay, items)
        check_write_back(replay)
