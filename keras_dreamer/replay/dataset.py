"""The replay as the dataset of `fit`."""

from typing import Any

import keras
import numpy as np

from keras_dreamer.replay.replay import Replay


class ReplayDataset(keras.utils.PyDataset):
    """Dataset that `Dreamer.fit` draws replayed batches from.

    Keras asks a dataset for batches at a different moment on every backend, up
    to two steps ahead. What it gets from this one is therefore only a ticket,
    and `Dreamer` calls `draw` in the main thread when a step begins. So every
    batch holds what the replay holds at that time.

    A subclass may override `draw` and serve any such batch, with
    `replay=None`.

    Args:
        replay: `Replay`, or `None` for a subclass with its own `draw`.
        batch_size: int. Windows of a batch. `None` takes the config's.
        batch_length: int. Trained rows of a window. `None` takes the
            replay's; another number is refused.
        steps_per_epoch: int. Updates of an epoch. With `None` the dataset
            never ends, and `fit` needs `steps_per_epoch`.

    Example:

    >>> dataset = keras_dreamer.replay.ReplayDataset(replay, batch_size=16)
    >>> dataset.batch_length  # model.fit(dataset, steps_per_epoch=1000)
    64
    """

    def __init__(
        self,
        replay: Replay | None,
        batch_size: int | None = None,
        batch_length: int | None = None,
        steps_per_epoch: int | None = None,
    ) -> None:
        super().__init__()
        config = replay.config if replay is not None else None
        self.replay = replay
        self.batch_size = batch_size or getattr(config, "batch_size", 16)
        self.batch_length = batch_length or getattr(config, "batch_length", 64)
        self.steps_per_epoch = steps_per_epoch
        if replay is not None:
            self._check_replay()

    @property
    def num_batches(self) -> int | None:
        """Batches of an epoch, or `None` when the dataset never ends."""
        return self.steps_per_epoch

    def __getitem__(self, index):
        return (np.zeros((self.batch_size,), "int32"),)

    def draw(self) -> dict[str, Any]:
        """Returns a batch as `Replay.sample` describes it."""
        return self.replay.sample(self.batch_size)

    def _check_replay(self):
        replay = self.replay
        if self.batch_length != replay.config.batch_length:
            raise ValueError(
                "`batch_length` must be that of the replay, whose windows have "
                "a fixed length. Received: batch_length="
                f"{self.batch_length}, and the replay was made with "
                f"batch_length={replay.config.batch_length}. Leave it out, or "
                "make the replay with `config.replace(batch_length="
                f"{self.batch_length})`."
            )
        if replay.capacity < self.batch_size * replay.length:
            raise ValueError(
                "The replay's capacity must be at least batch_size * "
                "(batch_length + replay_context) = "
                f"{self.batch_size * replay.length}. Received: capacity="
                f"{replay.capacity}, batch_size={self.batch_size}. Raise the "
                "capacity or lower the batch size."
            )
