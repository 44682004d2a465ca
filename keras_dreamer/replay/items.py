"""Bookkeeping of the replay: which start positions can be sampled."""

import collections

import numpy as np

from keras_dreamer.replay.pool import split_ids
from keras_dreamer.replay.pool import step_ids


class Items:
    """Start positions of windows: a FIFO with an online queue.

    Row n of a stream completes the window that starts at n - length + 1 and
    inserts it as an item. Beyond `capacity` items the oldest one of all
    streams goes. In one stream items therefore come and go in order of
    position, and two numbers per stream describe all of them:

        live starts of a stream = evicted .. rows - length

    Source: danijar/dreamerv3 at e3f0224, `embodied/core/replay.py`, and its
    uniform selector.

    Args:
        streams: int. Number of streams.
        length: int. Rows of a window.
        capacity: int. Largest number of items.
        online: bool. Whether to queue every window of fresh rows that
            overlaps no earlier one, to be sampled once before anything else.
    """

    def __init__(self, streams, length, capacity, online):
        self.length = length
        self.capacity = capacity
        self.online = online
        self.rows = np.zeros(streams, np.int64)  # Rows added so far.
        self.evicted = np.zeros(streams, np.int64)  # The first live start.
        self.order = Fifo(np.min_scalar_type(streams))  # Stream of each item.
        self.queue = collections.deque()  # Step ids of online windows.

    def __len__(self):
        return len(self.order)

    def next_ids(self, streams):
        """Returns the step ids that new rows will get.

        Args:
            streams: `(N,)` int64 array, the stream of each row in order.

        Returns:
            `(N,)` int64 array.
        """
        return step_ids(streams, self.rows[streams] + _ranks(streams))

    def append(self, step_id, fresh=True):
        """Counts new rows, inserts the items they complete, evicts old ones.

        Args:
            step_id: `(N,)` int64 array, what `next_ids` returned.
            fresh: bool. Whether the queue takes windows of these rows.
        """
        streams, positions = split_ids(step_id)
        self.rows += np.bincount(streams, minlength=self.rows.size)
        inserts = positions >= self.length - 1
        self.order.push(streams[inserts])
        if self.online and fresh:
            online = inserts & (positions > 0) & (positions % self.length == 0)
            starts = step_id[online] - (self.length - 1)
            self.queue.extend(starts.tolist())
        self.evict()

    def evict(self):
        """Removes the oldest items until `capacity` are left."""
        excess = len(self.order) - self.capacity
        if excess > 0:
            old = self.order.pop(excess)
            self.evicted += np.bincount(old, minlength=self.evicted.size)

    def draw(self, count, rng):
        """Draws items uniformly with replacement.

        Args:
            count: int. Number of draws.
            rng: `np.random.Generator`.

        Returns:
            `(count,)` int64 array, step ids of the windows' first rows.
        """
        starts = np.maximum(self.rows - self.length + 1, 0)
        ends = np.cumsum(starts - self.evicted)
        index = rng.integers(len(self), size=count)
        stream = np.searchsorted(ends, index, side="right")
        # The last live start of a stream is starts - 1 and has index ends - 1.
        return step_ids(stream, (starts - ends)[stream] + index)


class Fifo:
    """Queue of small integers in one array.

    Args:
        dtype: NumPy dtype of the entries.
    """

    def __init__(self, dtype):
        self._entries = np.zeros(64, dtype)
        self._head = 0
        self._tail = 0

    def __len__(self):
        return self._tail - self._head

    def __array__(self, dtype=None, copy=None):
        return np.array(self._entries[self._head : self._tail], dtype)

    def push(self, values):
        """Appends an array."""
        if self._tail + len(values) > len(self._entries):
            kept = np.asarray(self)
            size = len(kept) + len(values)
            self._entries = np.zeros(size + size // 2 + 64, kept.dtype)
            self._entries[: len(kept)] = kept
            self._head, self._tail = 0, len(kept)
        self._entries[self._tail : self._tail + len(values)] = values
        self._tail += len(values)

    def pop(self, count):
        """Removes and returns the `count` oldest entries as an array."""
        values = self._entries[self._head : self._head + count].copy()
        self._head += count
        return values


def _ranks(streams):
    """Returns how often each entry's stream occurred before it, `(N,)`."""
    if streams.size == 1:
        return 0
    order = np.argsort(streams, kind="stable")
    ordered = streams[order]
    ranks = np.empty_like(streams)
    ranks[order] = np.arange(ordered.size) - np.searchsorted(ordered, ordered)
    return ranks
