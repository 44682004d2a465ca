"""Whole episodes of a replay."""

import numpy as np

from keras_dreamer.replay.pool import step_ids


class Episodes:
    """Mixin of the replay: reads and adds its episodes one by one."""

    def add_episode(self, steps):
        """Adds a recorded episode to the stream with the fewest rows.

        Args:
            steps: nest of `(T + 1, ...)` arrays as `add_batch` takes it.
        """
        rows = self._items.rows
        stream = int(np.argmin(rows))
        if rows[stream] and not self._last_row_ends(stream):
            raise ValueError(
                "Recorded episodes must be added where no other one is "
                f"running. Received: stream {stream}, whose last row does not "
                "end an episode. Add them before the Driver begins."
            )
        streams = np.full(len(steps["reward"]), stream)
        self.add_batch(steps, streams, fresh=False)

    def episodes(self):
        """Yields the episodes that are held from their first row to an end.

        An episode that was abandoned, when a run was resumed, ends with the
        row before the next reset, without `is_last`. The action of the last
        row was never taken. Episodes of a single row are left out.

        Yields:
            Nest of `(T + 1, ...)` arrays as `add_batch` takes it, without
            `context`, one stream after the other.
        """
        for stream in range(self.num_streams):
            for start, stop in self._bounds(stream):
                yield self._rows(stream, start, stop)

    def _last_row_ends(self, stream):
        end = int(self._items.rows[stream])
        return self._rows(stream, end - 1, end, ["is_last"])["is_last"][0]

    def _bounds(self, stream):
        """Returns the positions of a stream's episodes, `[(start, stop)]`."""
        begin = int(self._items.evicted[stream])
        end = int(self._items.rows[stream])
        if begin == end:
            return []
        flags = self._rows(stream, begin, end, ("is_first", "is_last"))
        first = np.flatnonzero(flags["is_first"])
        stops = [*first[1:], end - begin]
        if not flags["is_last"][-1]:  # The last one is still running.
            first, stops = first[:-1], stops[:-1]
        return [
            (begin + int(start), begin + int(stop))
            for start, stop in zip(first, stops, strict=True)
            if stop - start > 1
        ]

    def _rows(self, stream, start, stop, names=None):
        """Reads rows of a stream, all fields but the latents by default."""
        if names is None:
            names = [
                n for n in self.schema.fields if n not in self.schema.latents
            ]
        with self._lock:
            row = self._pool.locate(step_ids(stream, np.arange(start, stop)))
            flat = {name: self._pool.arrays[name][row] for name in names}
        return self.schema.nest(flat)
