"""Where the arrays of the replay live: in memory, or in mapped files."""

import contextlib
import errno
import math
import mmap
import os
import pathlib
import shutil
import tempfile
import weakref

import numpy as np

try:
    import fcntl
except ImportError:  # Windows does not delete files that are mapped.
    fcntl = None

# Shared memory, the default, does not grow.
_PRIVATE = (
    {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS}
    if hasattr(mmap, "MAP_PRIVATE")
    else {}
)


class HeapArrays:
    """Arrays of one row per entry, in memory.

    The memory is the system's. `malloc`, told by `configure_runtime` to keep
    what is freed, would keep the gaps that growing arrays leave behind, too:
    up to three quarters of their size. On Linux growing moves no data.

    Args:
        fields: dict from name to `(shape, dtype)` of one row.
    """

    def __init__(self, fields):
        self._fields = fields
        self._memory = dict.fromkeys(fields, bytearray())
        self.arrays = {name: self._array(name) for name in fields}

    def resize(self, rows):
        """Grows the arrays to a number of rows; new ones are zero."""
        for name, (shape, dtype) in self._fields.items():
            nbytes = rows * math.prod(shape) * dtype.itemsize
            self.arrays[name] = None  # Memory with views cannot be moved.
            try:
                self._memory[name] = _grown(self._memory[name], nbytes)
            finally:
                self.arrays[name] = self._array(name)

    def _array(self, name):
        shape, dtype = self._fields[name]
        flat = np.asarray(memoryview(self._memory[name]))
        return flat.view(dtype).reshape(-1, *shape)


def _grown(memory, nbytes):
    """Returns `memory` with zeros behind it, itself or a copy."""
    try:
        if memory:
            with contextlib.suppress(BufferError, SystemError):
                # Fails where somebody holds a view, and on some systems.
                memory.resize(nbytes)
                return memory
        larger = _map(nbytes)
    except OSError as error:
        raise MemoryError(
            "The replay's arrays must fit into memory. Received: "
            f"{nbytes:,} bytes for one of them do not. Choose a smaller "
            '`capacity`, dtype="bfloat16", or a `directory` on a disk.'
        ) from error
    np.asarray(memoryview(larger))[: len(memory)] = memoryview(memory)
    return larger


def _map(nbytes):
    """Returns zeros, in large pages where the system has them.

    With these writing latents back takes half to three quarters of the time:
    rows are windows of all places.
    """
    memory = mmap.mmap(-1, nbytes, **_PRIVATE)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # A kernel without them.
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


class MappedArrays:
    """The same arrays in files that are mapped into memory.

    The system keeps in RAM what is in use and moves the rest to the files, so
    they may be larger than RAM. The files are working memory: they lie in a
    folder of their own, `replay-*`, which goes with the arrays, and what a
    process that was killed has left goes when the next one starts.

    Args:
        fields: dict from name to `(shape, dtype)` of one row.
        directory: path of the folder to make that folder in.
    """

    def __init__(self, fields, directory):
        directory = pathlib.Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(directory)
        self.folder = pathlib.Path(
            tempfile.mkdtemp(prefix="replay-", dir=directory)
        )
        lock = _lock(self.folder)
        self._fields = fields
        self._paths = {
            name: self.folder / f"{name.replace('/', '.')}.rows"
            for name in fields
        }
        for path in self._paths.values():
            path.touch()
        self._close = weakref.finalize(self, _remove, self.folder, lock)
        self.arrays = HeapArrays(fields).arrays  # Nothing can be mapped yet.

    def resize(self, rows):
        """Grows the arrays to a number of rows; new ones are zero."""
        for name, (shape, dtype) in self._fields.items():
            nbytes = rows * int(np.prod(shape)) * dtype.itemsize
            with open(self._paths[name], "r+b") as file:
                self._reserve(file.fileno(), nbytes)
                mapped = mmap.mmap(file.fileno(), nbytes)
            flat = np.frombuffer(mapped, np.uint8).view(dtype)
            self.arrays[name] = flat.reshape(rows, *shape)

    def _reserve(self, file, nbytes):
        """Makes a file larger, on a disk that has the room.

        A file with holes would grow without it, and kill the process with a
        bus error when a row is written later.
        """
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file, 0, nbytes)
            else:
                os.ftruncate(file, nbytes)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            raise OSError(
                errno.ENOSPC,
                "The disk of the replay's `directory` must have room for its "
                f"arrays. Received: {nbytes:,} bytes for one of them do not "
                "fit. Free space, choose another directory or a smaller "
                "`capacity`",
                str(self.folder),
            ) from None


def _lock(folder):
    """Marks a folder as in use as long as this process lives."""
    unlocked = folder / "lock.new"
    file = os.open(unlocked, os.O_CREAT | os.O_RDWR)
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX)
    os.rename(unlocked, folder / "lock")  # Appears locked.
    return file


def _remove_abandoned(directory):
    """Removes the folders of processes that have ended."""
    for lock in directory.glob("replay-*/lock"):
        try:
            file = os.open(lock, os.O_RDWR)
        except OSError:
            continue
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove_files(lock.parent)
        except OSError:
            pass  # Its process lives.
        finally:
            os.close(file)


def _remove(folder, lock):
    os.close(lock)
    _remove_files(folder)


def _remove_files(folder):
    """Removes a folder, the lock last.

    If the process is killed meanwhile, the lock tells the next one to go on.
    """
    for path in folder.glob("*.rows"):
        with contextlib.suppress(OSError):
            path.unlink()
    shutil.rmtree(folder, ignore_errors=True)
