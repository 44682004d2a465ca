"""The replay against a slow one that is written with lists."""

import numpy as np
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

STREAMS = 3

ADD = st.tuples(
    st.just("add"), st.lists(st.integers(0, STREAMS - 1), max_size=12)
)
SAMPLE = st.tuples(st.just("sample"), st.integers(1, 4))
UPDATE = st.tuples(st.just("update"), st.integers(0, 100))
RELOAD = st.tuples(st.just("reload"), st.none())


class ListReplay:
    """One list of rows per stream and one list of all items."""

    def __init__(self, length, capacity):
        self.length = length
        self.capacity = capacity
        self.page = next(p for p in (1, 2, 4, 8) if p >= length)
        self.latent = [[] for _ in range(STREAMS)]  # One entry per row.
        self.items = []
        self.queue = []

    def add(self, stream, latent):
        self.latent[stream].append(latent)
        n = len(self.latent[stream]) - 1
        if n >= self.length - 1:
            self.items.append((stream, n - self.length + 1))
            if n > 0 and n % self.length == 0:
                self.queue.append(self.items[-1])
        if len(self.items) > self.capacity:
            self.items.pop(0)

    def held(self, stream, t):
        """Whether a start in the page of row t or before can still come."""
        if not 0 <= t < len(self.latent[stream]):
            return False
        future = max(len(self.latent[stream]) - self.length + 1, 0)
        live = [start for s, start in self.items if s == stream] + [future]
        return (t // self.page + 1) * self.page > min(live)

    def pop(self, count):
        """Returns the online windows that a batch begins with."""
        windows = []
        while self.queue and len(windows) < count:
            item = self.queue.pop(0)
            if self.held(*item):
                windows.append(item)
        return windows


def number(stream, t):
    return stream * 1000 + t


def check_sample(small, replay, model, count):
    batch = replay.sample(count)
    ids = batch["step_id"]
    stream, t = ids >> 40, ids & 0xFFFFFFFF
    np.testing.assert_array_equal(small.numbers(batch), number(stream, t))
    assert (np.diff(ids) == 1).all()
    windows = list(zip(stream[:, 0].tolist(), t[:, 0].tolist(), strict=True))
    online = model.pop(count)
    assert windows[: len(online)] == online
    assert set(windows[len(online) :]) <= set(model.items)
    latent = [model.latent[s][start] for s, start in windows]
    np.testing.assert_array_equal(
        batch["context"]["deter"], small.latents(latent)["deter"]
    )
    return ids


def check_latents(small, replay, model):
    for stream, latent in enumerate(model.latent):
        t = np.arange(len(latent))
        held = np.array([model.held(stream, i) for i in t], bool)
        row = replay._pool.locate((stream << 40) | t)
        np.testing.assert_array_equal(row >= 0, held)
        expected = small.latents(np.array(latent, int)[held])
        for name, value in expected.items():
            stored = replay._pool.arrays[f"context/{name}"][row[held]]
            np.testing.assert_array_equal(stored, value)


def apply_update(small, replay, model, ids, salt):
    latent = 10_000 + 100 * salt + np.arange(ids.size).reshape(ids.shape)
    replay.update(ids, small.latents(latent))
    for step_id, value in zip(ids.flat, latent.flat, strict=True):
        stream, t = int(step_id) >> 40, int(step_id) & 0xFFFFFFFF
        if model.held(stream, t):
            model.latent[stream][t] = value


@settings(derandomize=True, max_examples=60, deadline=None)
@given(
    length=st.integers(2, 6),
    capacity=st.integers(1, 40),
    actions=st.lists(st.one_of(ADD, ADD, SAMPLE, UPDATE, RELOAD), max_size=40),
)
def test_agrees_with_lists(small, tmp_path_factory, length, capacity, actions):
    replay = small.replay(STREAMS, capacity, batch_length=length - 1)
    model = ListReplay(length, capacity)
    sampled = [np.array([[-1, 0, 1]])]  # Also ids of rows that never were.
    path = tmp_path_factory.getbasetemp() / "replay.npz"
    for kind, value in actions:
        if kind == "add":
            rows = []
            for stream in value:
                rows.append(number(stream, len(model.latent[stream])))
                model.add(stream, rows[-1])
            replay.add_batch(small.steps(np.array(rows, int)), value)
        elif kind == "sample" and model.items:
            sampled.append(check_sample(small, replay, model, value))
        elif kind == "update":
            ids = sampled[value % len(sampled)]
            apply_update(small, replay, model, ids, value)
        elif kind == "reload":
            replay.save(path)
            replay = small.replay(
                STREAMS, capacity, batch_length=length - 1, seed=9
            )
            replay.load(path)
        assert len(replay) == len(model.items)
        assert replay.queued == len(model.queue)
    check_latents(small, replay, model)
