"""Plain `.npz` files without pickle, read and written in parts."""

import contextlib
import os
import zipfile

import numpy as np

_PART = 4096  # Rows that are copied at once, so that saving needs no memory.


class DamagedFile(ValueError):
    """A file cannot be read as what it was written as.

    Args:
        path: path of the file.
        cause: exception or string, what is wrong.
    """

    def __init__(self, path, cause):
        super().__init__(
            "A saved file must be complete and as it was written. Received: "
            f"{os.fspath(path)!r}, which is not ({cause}). It was cut off or "
            "changed: take another copy or an older checkpoint."
        )
        self.path = path
        self.cause = cause


@contextlib.contextmanager
def damage_named(path):
    """Turns what goes wrong while a file is read into `DamagedFile`."""
    try:
        yield
    except (DamagedFile, FileNotFoundError, MemoryError):
        raise
    except Exception as error:
        cause = f"{type(error).__name__}: {error}"
        raise DamagedFile(path, cause) from error


@contextlib.contextmanager
def open_npz(path):
    """Opens a `.npz` for reading; the checksums in it are checked."""
    with damage_named(path), zipfile.ZipFile(path) as file:
        yield file


def write_array(file, name, array):
    """Adds an array to a zip that is open for writing."""
    with _member(file, name, "w") as stream:
        np.lib.format.write_array(stream, array, allow_pickle=False)


def read_array(file, name):
    """Returns an array of a zip that is open for reading."""
    with _member(file, name, "r") as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)


def write_rows(file, name, array, row):
    """Adds `array[row]`.

    Args:
        file: zip that is open for writing.
        name: string.
        array: array of one row per entry.
        row: `(N,)` int array.
    """
    header = {
        "descr": np.lib.format.dtype_to_descr(_plain(array.dtype)),
        "fortran_order": False,
        "shape": (len(row), *array.shape[1:]),
    }
    with _member(file, name, "w") as stream:
        np.lib.format.write_array_header_1_0(stream, header)
        for part in parts(len(row)):
            stream.write(array[row[part]].tobytes())


def read_rows(file, name, array, row, dtype):
    """Reads what `write_rows` wrote into `array[row]`, cast to its dtype.

    Args:
        file: zip that is open for reading.
        name: string.
        array: array of one row per entry.
        row: `(N,)` int array, where the entries go; -1 for nowhere.
        dtype: NumPy dtype of the stored values.
    """
    shape = array.shape[1:]
    nbytes = dtype.itemsize * int(np.prod(shape))  # Of one row.
    with _member(file, name, "r") as stream:
        np.lib.format.read_magic(stream)
        found, *_ = np.lib.format.read_array_header_1_0(stream)
        if found != (len(row), *shape):
            raise ValueError(f"{name} has the shape {found}")
        for part in parts(len(row)):
            values = np.frombuffer(
                stream.read(len(row[part]) * nbytes), dtype
            ).reshape(-1, *shape)
            kept = row[part] >= 0
            array[row[part][kept]] = values[kept]


def parts(count):
    """Returns slices that cover `count` rows, in bites that fit memory."""
    return [slice(i, i + _PART) for i in range(0, count, _PART)]


def _member(file, name, mode):
    return file.open(f"{name}.npy", mode, force_zip64=mode == "w")


def _plain(dtype):
    """Returns a dtype that NumPy's format knows, for bfloat16 its bits."""
    if dtype.kind == "V":
        return np.dtype(f"u{dtype.itemsize}")
    return dtype
