"""Memory of the replay: rows of all streams in pages of shared arrays."""

import numpy as np

from keras_dreamer.replay.disk import HeapArrays
from keras_dreamer.replay.disk import MappedArrays

CHANGED = 0  # In `Pool.files`: the row is in no file as it is now.
UNUSED = -1  # In `Pool.files`: there is no row.
POSITION_BITS = 40
_POSITION_MASK = (1 << POSITION_BITS) - 1
_GROWTH = 32  # The pool grows by 1/32, about 3% of its pages.
_MIN_GROWTH = 4  # In pages, so that a small pool does not grow at every page.


def step_ids(streams, positions):
    """Returns the global int64 ids of rows, `stream << 40 | position`."""
    return (np.asarray(streams, np.int64) << POSITION_BITS) | positions


def split_ids(step_id):
    """Returns the streams and the positions that `step_ids` was given."""
    return step_id >> POSITION_BITS, step_id & _POSITION_MASK


class Pool:
    """Rows of append-only streams, stored in pages of shared arrays.

    There is one array per field, whose first axis counts the rows of all
    streams. It is cut into pages, and a page table says which page holds which
    part of a stream. Old pages are handed back and used again by any stream, so
    memory follows the rows that are held and not the number of streams.

    The arrays grow a few percent at a time. They must not be handed out, not
    even as views: a view keeps the old memory, which is then copied.

    Attributes:
        arrays: dict from name to array.
        files: int32 array, for each row the number of the saved file that
            holds it as it is, or `CHANGED`, or `UNUSED`.

    Args:
        fields: dict from name to `(shape, dtype)` of one row.
        streams: int. Number of streams.
        page: int. Rows of a page, a power of two.
        directory: `None`, or the folder for memory-mapped arrays.
    """

    def __init__(self, fields, streams, page, directory=None):
        self.page = page
        self._memory = (
            HeapArrays(fields)
            if directory is None
            else MappedArrays(fields, directory)
        )
        self.arrays = self._memory.arrays
        self.files = np.zeros(0, np.int32)
        self.row_nbytes = sum(
            int(np.prod(array.shape[1:])) * array.itemsize
            for array in self.arrays.values()
        )
        self._shift = page.bit_length() - 1
        self._table = np.full((streams, 16), -1, np.int32)  # -1: not held.
        self._first = np.zeros(streams, np.int64)  # Pages before are released.
        self._pages = 0
        self._free = []

    @property
    def nbytes(self):
        """Bytes of the pages in use."""
        return (self._pages - len(self._free)) * self.page * self.row_nbytes

    def locate(self, step_id):
        """Returns where rows are stored.

        Args:
            step_id: int64 array of any shape.

        Returns:
            int64 array like `step_id`: indices into the first axis of
            `arrays`, and -1 for rows that are not held.
        """
        stream, position = split_ids(step_id)
        page = position >> self._shift
        streams, pages = self._table.shape
        known = (stream >= 0) & (stream < streams) & (page < pages)
        if not known.all():
            stream, page = np.where(known, (stream, page), 0)
        held = self._table[stream, page].astype(np.int64)
        row = (held << self._shift) | (position & (self.page - 1))
        return np.where(known & (held >= 0), row, -1)

    def claim(self, step_id):
        """Makes room for rows that follow the ones held in their streams.

        Args:
            step_id: `(N,)` int64 array. Every stream's positions continue
                without a gap, beginning at a multiple of `page`.

        Returns:
            `(N,)` int64 array, where to store the rows.
        """
        stream, position = split_ids(step_id)
        opens = (position & (self.page - 1)) == 0
        if opens.any():
            self._open(stream[opens], position[opens] >> self._shift)
        return self.locate(step_id)

    def ids(self, row):
        """Returns the step ids of rows that are held, `locate` reversed.

        Args:
            row: `(N,)` int64 array of indices into `arrays`.

        Returns:
            `(N,)` int64 array.
        """
        stream, page = np.nonzero(self._table >= 0)
        first = np.full(self._pages, -1, np.int64)  # Of each stored page.
        first[self._table[stream, page]] = step_ids(stream, page << self._shift)
        return first[row >> self._shift] + (row & (self.page - 1))

    def release(self, positions):
        """Frees all pages that end before a position.

        Args:
            positions: `(streams,)` int64 array, one position per stream.
        """
        first = positions >> self._shift
        for stream in np.flatnonzero(first > self._first):
            old = slice(self._first[stream], first[stream])
            pages = self._table[stream, old]
            pages = pages[pages >= 0]
            self._free.extend(pages.tolist())
            self.files.reshape(-1, self.page)[pages] = UNUSED
            self._table[stream, old] = -1
            self._first[stream] = first[stream]

    def _open(self, stream, page):
        self._widen(int(page.max()))
        missing = self._table[stream, page] < 0  # An add that failed has some.
        taken = self._take(int(missing.sum()))
        self._table[stream[missing], page[missing]] = taken

    def _widen(self, page):
        streams, pages = self._table.shape
        if page >= pages:
            added = max(pages, page + 1 - pages)
            empty = np.full((streams, added), -1, np.int32)
            self._table = np.concatenate([self._table, empty], axis=1)

    def _take(self, count):
        missing = count - len(self._free)
        if missing > 0:
            self._grow(max(missing, self._pages // _GROWTH, _MIN_GROWTH))
        kept = len(self._free) - count
        taken = self._free[kept:][::-1]
        del self._free[kept:]
        return taken

    def _grow(self, pages):
        total = self._pages + pages
        self._memory.resize(total * self.page)
        unused = np.full(pages * self.page, UNUSED, np.int32)
        self.files = np.concatenate([self.files, unused])
        self._free[:0] = range(total - 1, self._pages - 1, -1)
        self._pages = total
