"""Experience replay with stored latents and an online queue."""

import os
import threading
from typing import Any

import keras
import numpy as np

from keras_dreamer.config import Config
from keras_dreamer.replay.episodes import Episodes
from keras_dreamer.replay.items import Items
from keras_dreamer.replay.pool import CHANGED
from keras_dreamer.replay.pool import Pool
from keras_dreamer.replay.reading import Reading
from keras_dreamer.replay.saving import Saving
from keras_dreamer.replay.schema import Schema
from keras_dreamer.replay.snapshots import Snapshots


class Replay(Reading, Saving, Episodes):
    """Stores the steps of parallel environments and samples windows of them.

    Every environment has one append-only stream, in which its episodes follow
    each other. An item is a start position in a stream, its window the
    `length = config.batch_length + config.replay_context` rows from there on,
    across the ends of episodes. Every row becomes the start of one item as
    soon as its window is complete. Beyond `capacity` items the oldest goes.

    With `config.replay_context` each row also holds the latents that the agent
    computed there. Windows come with those of their last context row,
    where training begins, and `update` replaces them by newer ones.

    Memory grows with the stored rows, not with `capacity`:
    `predicted_nbytes` says in advance how much a run needs.

    Source: DreamerV3 (https://arxiv.org/abs/2301.04104v2), experience replay,
    and `embodied/core/replay.py` of danijar/dreamerv3 at e3f0224. Here the
    sampler is seeded by `seed` and sampling is synchronous.

    Args:
        config: `Config`. `batch_length`, `replay_context`, `deter`, `stoch`
            and `classes` are used.
        envs: object with `num_envs`, `single_observation_space` and
            `single_action_space`, for example what `envs.make` returns.
        capacity: int. Largest number of items.
        online: bool. Whether windows of fresh rows, one in `length` and without
            overlap, are sampled once before anything else.
        seed: int. Seed of the sampler.
        dtype: string. Type of the stored `deter`. `None` takes the compute
            dtype of Keras's global dtype policy.
        directory: path of a folder. Rows are kept in memory-mapped files there
            and may be more than fits into RAM. The disk needs `nbytes`. It is
            working memory: `save` and checkpoints are what lasts.

    Example:

    >>> config = keras_dreamer.Config(size="12m")
    >>> envs = keras_dreamer.envs.make("gym:Pendulum-v1", num_envs=16)
    >>> replay = keras_dreamer.replay.Replay(config, envs, dtype="bfloat16")
    >>> replay.step_nbytes, replay.predicted_nbytes(steps=250_000)
    (4151, 1045653504)
    """

    def __init__(
        self,
        config: Config,
        envs: Any,
        capacity: int = 5_000_000,
        online: bool = True,
        seed: int = 0,
        dtype: str | None = None,
        directory: str | os.PathLike[str] | None = None,
    ) -> None:
        _check_sizes(config, envs, capacity)
        self.config = config
        self.capacity = capacity
        self.length = config.batch_length + config.replay_context
        self.num_streams = envs.num_envs
        self.observation_space = envs.single_observation_space
        self.action_space = envs.single_action_space
        self.directory = directory
        dtype = dtype or keras.config.dtype_policy().compute_dtype
        self.schema = Schema(config, envs, dtype)
        self._items = Items(self.num_streams, self.length, capacity, online)
        self._pool = self._empty_pool()
        self._snapshots = Snapshots()
        self._rng = np.random.default_rng(seed)
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._items)

    @property
    def nbytes(self) -> int:
        """Bytes of the stored rows, in whole pages."""
        return self._pool.nbytes

    @property
    def step_nbytes(self) -> int:
        """Bytes of one stored row."""
        return self._pool.row_nbytes

    @property
    def queued(self) -> int:
        """Windows in the online queue, evicted ones included."""
        return len(self._items.queue)

    def predicted_nbytes(self, steps: int) -> int:
        """Returns what `nbytes` will be after a number of steps.

        Args:
            steps: int. Steps over all streams, which take turns.
        """
        streams = np.arange(self.num_streams)
        rows = _share(steps, streams)
        items = int(np.maximum(rows - self.length + 1, 0).sum())
        evicted = _share(max(items - self.capacity, 0), streams)
        page = self._pool.page
        pages = -(-rows // page) - evicted // page
        return int(pages.sum()) * page * self.step_nbytes

    def add(self, step: dict[str, Any], stream: int) -> None:
        """Stores one step of one environment.

        Args:
            step: dict of `observation` and `action` (each a dict from key to
                array without batch and time axes), `reward`, `is_first`,
                `is_last`, `is_terminal` and `context`, a dict of `deter` `(D,)`
                and `stoch` `(S,)` class indices. Without `context`, zeros are
                stored.
            stream: int. Index of the environment.
        """
        streams = self._checked_streams([stream])
        self._append(self.schema.flatten(step, ()), streams)

    def add_batch(
        self, steps: dict[str, Any], streams: Any, fresh: bool = True
    ) -> None:
        """Stores several steps, in order.

        Args:
            steps: nest as for `add`, with a leading axis of size N.
            streams: `(N,)` int array. The environment of each step; one that
                occurs several times gets its steps in this order.
            fresh: bool. Whether the online queue takes their windows, which
                it serves before all others. Not for recorded experience.
        """
        streams = self._checked_streams(streams)
        self._append(self.schema.flatten(steps, streams.shape), streams, fresh)

    def sample(self, batch_size: int, report: bool = False) -> dict[str, Any]:
        """Draws windows: first the queued ones, the rest uniformly.

        `is_first` is set in the first row of a window and `is_last` in every
        row before an `is_first`, so that a window says by itself where the
        state must be reset and where returns are cut.

        Args:
            batch_size: int. Number of windows, B.
            report: bool. Whether to leave the online queue alone, for batches
                that are not trained on.

        Returns:
            dict of `observation` and `action` (dicts of `(B, L, ...)`),
            `reward`, `is_first`, `is_last`, `is_terminal` and `step_id` (int64)
            of shape `(B, L)`, and with a replay context `context`, a dict of
            `deter` `(B, D)` and `stoch` `(B, S)` int32 of row
            `replay_context - 1`. L is `length`.
        """
        with self._lock:
            self._check_not_empty()
            start = self._draw_starts(batch_size, report)
            step_id = start[:, None] + np.arange(self.length)  # (B, L)
            return self._read(step_id, self._pool.locate(step_id))

    def update(self, step_id: Any, latents: dict[str, Any]) -> None:
        """Replaces stored latents, where the rows are still held.

        Without a replay context nothing is stored and nothing happens.

        Args:
            step_id: `(B, K + T)` int64 array, `step_id` of a batch, or the
                `(B, T)` without its context rows. For a row that occurs
                several times, the last one counts.
            latents: dict of `deter` `(B, T, D)` and `stoch` `(B, T, S)` class
                indices.
        """
        step_id = np.asarray(step_id)
        if not self.schema.latents:
            return
        context = self.config.replay_context
        if step_id.shape[1] == len(latents.get("deter", [[]])[0]) + context:
            step_id = step_id[:, context:]
        flat = self.schema.flatten_latents(latents, step_id.shape)
        with self._lock:
            row = self._pool.locate(step_id.reshape(-1))
            latest = _latest(row)
            self._pool.files[row[latest]] = CHANGED
            for name, value in flat.items():
                value = value.reshape(-1, value.shape[-1])
                if latest.size < row.size:
                    value = value[latest]
                self._pool.arrays[name][row[latest]] = value

    def _empty_pool(self):
        page = 1 << (self.length - 1).bit_length()
        return Pool(self.schema.fields, self.num_streams, page, self.directory)

    def _append(self, flat, streams, fresh=True):
        with self._lock:
            step_id = self._items.next_ids(streams)
            row = self._pool.claim(step_id)
            for name, array in self._pool.arrays.items():
                array[row] = flat.get(name, 0)
            self._pool.files[row] = CHANGED
            self._items.append(step_id, fresh)
            self._pool.release(self._items.evicted)

    def _draw_starts(self, batch_size, report):
        queue = self._items.queue
        online = []
        while queue and not report and len(online) < batch_size:
            start = queue.popleft()
            if self._pool.locate(np.array(start)) >= 0:
                online.append(start)
        uniform = self._items.draw(batch_size - len(online), self._rng)
        return np.concatenate([np.array(online, np.int64), uniform])

    def _read(self, step_id, row):
        batch = _annotate(self._gather(row))
        return self.schema.nest({**batch, "step_id": step_id})

    def _gather(self, row):
        context = row[:, self.config.replay_context - 1]
        batch = {
            name: array[context if name in self.schema.latents else row]
            for name, array in self._pool.arrays.items()
        }
        if self.schema.latents:
            stoch = batch["context/stoch"]
            batch["context/stoch"] = stoch.astype("int32")
        return batch

    def _checked_streams(self, streams):
        indices = np.asarray(streams)
        integer = np.issubdtype(indices.dtype, np.integer)
        valid = indices.ndim == 1 and (integer or not indices.size)
        if not valid or np.any((indices < 0) | (indices >= self.num_streams)):
            raise ValueError(
                "A stream must be an integer from 0 to num_envs - 1 = "
                f"{self.num_streams - 1}. Received: {indices.tolist()}. Number "
                "the environments from 0, one entry for each step, or make the "
                "replay for more environments."
            )
        return indices.astype(np.int64)

    def _check_not_empty(self):
        if not len(self):
            raise ValueError(
                f"Sampling needs a stream of at least {self.length} steps "
                "(batch_length + replay_context). Received: steps per stream="
                f"{self._items.rows.tolist()}. Add more steps first."
            )


def _annotate(batch):
    last, first = batch["is_last"], batch["is_first"]
    last[:, :-1] |= first[:, 1:]
    first[:, 0] = True
    return batch


def _latest(row):
    """Returns the indices of the last occurrence of every held row."""
    held, index = np.unique(row[::-1], return_index=True)
    return np.sort(row.size - 1 - index[held >= 0])


def _share(total, streams):
    """Returns how many of `total` turns fall to each stream."""
    return total // streams.size + (streams < total % streams.size)


def _check_sizes(config, envs, capacity):
    if config.batch_length < 1 or envs.num_envs < 1 or capacity < 1:
        raise ValueError(
            "`batch_length`, `num_envs` and `capacity` must be 1 or more. "
            f"Received: batch_length={config.batch_length}, "
            f"num_envs={envs.num_envs}, capacity={capacity}. The published "
            "values are batch_length=64, num_envs=16, capacity=5_000_000."
        )
