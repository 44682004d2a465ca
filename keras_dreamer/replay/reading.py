"""Rows of a replay, looked up by their ids."""

from typing import Any

import numpy as np

from keras_dreamer.replay.pool import split_ids
from keras_dreamer.replay.pool import step_ids


class Reading:
    """Mixin of the replay: reads given rows instead of drawing them."""

    def newest_ids(self, length: int) -> np.ndarray:
        """Returns the ids of the newest rows of every stream.

        Args:
            length: int. Rows of each stream, at least 1.

        Returns:
            `(N, length)` int64 array for the N streams that hold so many
            rows, oldest row first. N may be 0.
        """
        last = self._items.rows
        enough = np.flatnonzero(last - self._items.evicted >= length)
        positions = last[enough, None] - length + np.arange(length)
        return step_ids(enough[:, None], positions)

    def read(self, step_id: Any) -> dict[str, Any]:
        """Returns windows of rows whose ids are known.

        Nothing is drawn, and the online queue stays as it is.

        Args:
            step_id: `(B, L)` int64 array, each line consecutive rows of one
                stream, for example of `newest_ids` or of another batch.

        Returns:
            dict as `sample` returns it, of windows of L rows.
        """
        step_id = np.asarray(step_id, np.int64)
        with self._lock:
            row = self._pool.locate(step_id)
            missing = row < 0
            # A page may have room for rows that are yet to come.
            stream, position = split_ids(np.where(missing, 0, step_id))
            missing |= position >= self._items.rows[stream]
            if missing.any():
                raise ValueError(
                    "`step_id` must be ids of rows that the replay holds. "
                    f"Received: {step_id[missing][0]}, which it does not. Take "
                    "them from `newest_ids` or from a batch."
                )
            return self._read(step_id, row)
