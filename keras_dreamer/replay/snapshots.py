"""The replay as files of which every checkpoint writes only what is new.

Rows are appended, but their latents change for as long as they are held: every
update replaces those of `batch_size * batch_length` rows, and a run can only go
on exactly as if nothing had happened when all of them are saved. So the pool
remembers for every row which file holds it as it is. A checkpoint writes one
new file with all rows that are in none, and takes over the files of the
checkpoint before, as hard links. A file whose rows have mostly changed since is
given up: what it still holds goes into the new file, too.

Hence a checkpoint costs at most twice the rows that were added or updated since
the last one, whatever the replay holds, and its files take at most twice the
space of the replay's rows. Besides, the pool's file numbers and the order of
eviction are passed over, about 5 bytes per row in memory.

Each checkpoint is complete in its own directory, and can be copied or removed
without looking at the others.
"""

import os
import pathlib
import shutil
import uuid
import zipfile

import numpy as np

from keras_dreamer.replay import files
from keras_dreamer.replay import storage
from keras_dreamer.replay.pool import CHANGED
from keras_dreamer.replay.pool import UNUSED
from keras_dreamer.replay.schema import numpy_dtype

INDEX = "replay.npz"


class Snapshots:
    """Writes and reads the directories of one replay.

    Attributes:
        names: list of the files' names; entry n is what `Pool.files` calls n.
        counts: list of the numbers of rows in them.
    """

    def __init__(self):
        self.names = [None]  # 0 is `CHANGED`.
        self.counts = [0]

    def save(self, directory, previous, schema, items, pool, rng):
        """Writes a replay.

        It counts as saved when `directory` is the `previous` of the next
        call, so nothing is lost when a directory is given up.

        Args:
            directory: path of an empty directory.
            previous: path of a directory whose files may be taken over, or
                `None`.
            schema: `Schema`.
            items: `Items`.
            pool: `Pool`.
            rng: `np.random.Generator` of the sampler.
        """
        directory = pathlib.Path(directory)
        kept, row = self._divide(previous, pool)
        for number in kept:
            _link(previous, directory, self.names[number])
        if row.size:
            # Names are unique, so that no file is taken for another one.
            number = len(self.names)
            self.names.append(f"rows-{number:06d}-{uuid.uuid4().hex[:8]}.npz")
            self.counts.append(row.size)
            _write(directory / self.names[number], pool, row)
            pool.files[row] = number
            kept.append(number)
        with zipfile.ZipFile(directory / INDEX, "w") as file:
            names = [self.names[number] for number in kept]
            storage.write_index(file, schema, items, rng, files=names)

    def load(self, directory, schema, items, pool, rng):
        """Reads a directory that `save` has written.

        Args:
            directory: path.
            schema: `Schema` that the files must agree with.
            items: `Items`, overwritten.
            pool: `Pool` without rows, filled.
            rng: `np.random.Generator`, overwritten.
        """
        directory = pathlib.Path(directory)
        meta, index = storage.read_index(directory / INDEX)
        storage.check(directory, meta, schema, items)
        located = storage.claim_rows(index, pool)
        counts = [0]
        for name in meta["files"]:
            if pathlib.PurePath(name).name != name:
                raise files.DamagedFile(
                    directory / INDEX, f"{name} lies elsewhere"
                )
        # The later file has the newer version of a row.
        for number, name in enumerate(meta["files"], 1):
            row = _read(directory / name, pool)
            pool.files[row[row >= 0]] = number
            counts.append(row.size)
        missing = np.count_nonzero(pool.files[located] == CHANGED)
        if missing:
            raise files.DamagedFile(
                directory / INDEX, f"{missing} rows are in none of its files"
            )
        self.names, self.counts = [None, *meta["files"]], counts
        storage.restore(meta, index, items, pool, rng)

    def _divide(self, previous, pool):
        """Returns the files to take over and the rows to write."""
        held = np.bincount(
            np.maximum(pool.files, CHANGED), minlength=len(self.names)
        )
        # What becomes of each number, UNUSED, 0, 1 and so on.
        becomes = np.arange(UNUSED, len(self.names), dtype=np.int32)
        kept = []
        for number in (np.flatnonzero(held[1:]) + 1).tolist():
            found = (
                previous
                and (pathlib.Path(previous) / self.names[number]).exists()
            )
            if found and 2 * held[number] >= self.counts[number]:
                kept.append(number)
            else:
                becomes[number - UNUSED] = CHANGED
        pool.files = becomes[pool.files - UNUSED]
        return kept, np.flatnonzero(pool.files == CHANGED)


def _write(path, pool, row):
    with zipfile.ZipFile(path, "w") as file:
        dtypes = [array.dtype.name for array in pool.arrays.values()]
        files.write_array(file, "dtypes", np.array(dtypes))
        files.write_array(file, "step_id", pool.ids(row))
        for name, array in pool.arrays.items():
            files.write_rows(file, f"row/{name}", array, row)


def _read(path, pool):
    """Reads the rows that are held; returns the places of all, -1 for none."""
    with files.open_npz(path) as file:
        row = pool.locate(files.read_array(file, "step_id"))
        dtypes = files.read_array(file, "dtypes").tolist()
        for (name, array), dtype in zip(
            pool.arrays.items(), dtypes, strict=True
        ):
            dtype = numpy_dtype(dtype)
            files.read_rows(file, f"row/{name}", array, row, dtype)
    return row


def _link(source, target, name):
    """Takes a file over, as a second name where the system can."""
    source, target = pathlib.Path(source) / name, pathlib.Path(target) / name
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
