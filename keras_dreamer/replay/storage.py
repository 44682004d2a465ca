"""Files of the replay: one `.npz` without pickle, read and written in parts."""

import json
import os
import zipfile

import numpy as np

from keras_dreamer.replay.pool import step_ids
from keras_dreamer.replay.schema import numpy_dtype

_FORMAT = 1
_PART = 4096  # Rows that are copied at once, so that saving needs no memory.


def save(path, schema, items, pool, rng):
    """Writes a replay, every stream's rows one after the other.

    Args:
        path: path of the file.
        schema: `Schema`.
        items: `Items`.
        pool: `Pool`.
        rng: `np.random.Generator` of the sampler.
    """
    meta = {
        "format": _FORMAT,
        "length": items.length,
        "num_envs": len(items.rows),
        "fields": schema.describe(),
        "rng": rng.bit_generator.state,
    }
    small = {
        "meta": np.array(json.dumps(meta)),
        "rows": items.rows,
        "evicted": items.evicted,
        "order": np.asarray(items.order),
        "queue": np.array(items.queue, np.int64),
    }
    unfinished = f"{os.fspath(path)}.unfinished"
    with zipfile.ZipFile(unfinished, "w") as file:
        for name, array in small.items():
            with _member(file, name, "w") as stream:
                np.lib.format.write_array(stream, array, allow_pickle=False)
        located = pool.locate(_held_ids(items.rows, items.evicted, pool.page))
        for name, array in pool.arrays.items():
            with _member(file, f"row/{name}", "w") as stream:
                _write_rows(stream, array, located)
    os.replace(unfinished, path)


def load(path, schema, items, pool, rng):
    """Reads a replay that `save` has written.

    Args:
        path: path of the file.
        schema: `Schema` that the file must agree with.
        items: `Items`, overwritten.
        pool: `Pool` without rows, filled.
        rng: `np.random.Generator`, overwritten.
    """
    with zipfile.ZipFile(path) as file:
        small = {
            name: _read_array(file, name)
            for name in ("meta", "rows", "evicted", "order", "queue")
        }
        meta = json.loads(str(small.pop("meta")))
        _check(path, meta, schema, items)
        located = pool.claim(
            _held_ids(small["rows"], small["evicted"], pool.page)
        )
        for name, array in pool.arrays.items():
            dtype = numpy_dtype(meta["fields"][name]["dtype"])
            with _member(file, f"row/{name}", "r") as stream:
                _read_rows(stream, array, located, dtype)
    items.rows, items.evicted = small["rows"], small["evicted"]
    items.order.pop(len(items))
    items.order.push(small["order"])
    items.queue.clear()
    if items.online:
        items.queue.extend(small["queue"].tolist())
    items.evict()
    pool.release(items.evicted)
    rng.bit_generator.state = meta["rng"]


def _held_ids(rows, evicted, page):
    """Returns the step ids of all rows in pages in use, stream by stream."""
    first = evicted // page * page
    return np.concatenate(
        [
            step_ids(stream, np.arange(first[stream], rows[stream]))
            for stream in range(len(rows))
        ]
    )


def _check(path, meta, schema, items):
    saved = {
        "format": meta["format"],
        "num_envs": meta["num_envs"],
        "length": meta["length"],
        **meta["fields"],
    }
    own = {
        "format": _FORMAT,
        "num_envs": len(items.rows),
        "length": items.length,
        **schema.describe(),
    }
    differ = [
        f"{name}: {own.get(name)} here, {saved.get(name)} in the file"
        for name in sorted(own.keys() | saved.keys())
        if _comparable(name, own) != _comparable(name, saved)
    ]
    if differ:
        raise ValueError(
            "A replay can only be loaded into one with the same number of "
            "environments, window length, spaces and latent sizes. Received: "
            f"{os.fspath(path)!r}, which differs in {'; '.join(differ)}. Make "
            "the replay with the config and environments of the saved one."
        )


def _comparable(name, values):
    if name == "context/deter" and name in values:
        return values[name]["shape"]  # Floats are cast.
    return values.get(name)


def _write_rows(stream, array, located):
    dtype = _plain(array.dtype)
    header = {
        "descr": np.lib.format.dtype_to_descr(dtype),
        "fortran_order": False,
        "shape": (len(located), *array.shape[1:]),
    }
    np.lib.format.write_array_header_1_0(stream, header)
    for begin in range(0, len(located), _PART):
        stream.write(array[located[begin : begin + _PART]].tobytes())


def _read_rows(stream, array, located, dtype):
    np.lib.format.read_magic(stream)
    np.lib.format.read_array_header_1_0(stream)
    nbytes = dtype.itemsize * int(np.prod(array.shape[1:]))  # Of one row.
    for begin in range(0, len(located), _PART):
        row = located[begin : begin + _PART]
        values = np.frombuffer(stream.read(len(row) * nbytes), dtype)
        array[row] = values.reshape(len(row), *array.shape[1:])


def _read_array(file, name):
    with _member(file, name, "r") as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)


def _member(file, name, mode):
    return file.open(f"{name}.npy", mode, force_zip64=mode == "w")


def _plain(dtype):
    """Returns a dtype that NumPy's format knows, for bfloat16 its bits."""
    if dtype.kind == "V":
        return np.dtype(f"u{dtype.itemsize}")
    return dtype
