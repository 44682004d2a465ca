"""The replay in one `.npz` file: an index, and all rows."""

import json
import os
import zipfile

import numpy as np

from keras_dreamer.replay import files
from keras_dreamer.replay.pool import CHANGED
from keras_dreamer.replay.pool import step_ids
from keras_dreamer.replay.schema import numpy_dtype

_FORMAT = 1
_INDEX = ("rows", "evicted", "order", "queue")


def save(path, schema, items, pool, rng):
    """Writes a replay, every stream's rows one after the other.

    Args:
        path: path of the file.
        schema: `Schema`.
        items: `Items`.
        pool: `Pool`.
        rng: `np.random.Generator` of the sampler.
    """
    unfinished = f"{os.fspath(path)}.unfinished"
    with zipfile.ZipFile(unfinished, "w") as file:
        write_index(file, schema, items, rng)
        located = pool.locate(held_ids(items.rows, items.evicted, pool.page))
        for name, array in pool.arrays.items():
            files.write_rows(file, f"row/{name}", array, located)
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
    meta, index = read_index(path)
    check(path, meta, schema, items)
    located = claim_rows(index, pool)
    with files.open_npz(path) as file:
        for name, array in pool.arrays.items():
            dtype = numpy_dtype(meta["fields"][name]["dtype"])
            files.read_rows(file, f"row/{name}", array, located, dtype)
    restore(meta, index, items, pool, rng)


def write_index(file, schema, items, rng, **more):
    """Writes all of a replay but its rows into an open zip.

    Args:
        file: zip that is open for writing.
        schema: `Schema`.
        items: `Items`.
        rng: `np.random.Generator` of the sampler.
        **more: what else `meta` shall hold, for JSON.
    """
    meta = {
        **_describe(schema, items),
        **schema.spaces,
        "rng": rng.bit_generator.state,
        **more,
    }
    index = {
        "meta": np.array(json.dumps(meta)),
        "rows": items.rows,
        "evicted": items.evicted,
        "order": np.asarray(items.order),
        "queue": np.array(items.queue, np.int64),
    }
    for name, array in index.items():
        files.write_array(file, name, array)


def read_index(path):
    """Returns the dict `meta` and the dict of arrays of `write_index`."""
    with files.open_npz(path) as file:
        meta = json.loads(str(files.read_array(file, "meta")))
        index = {name: files.read_array(file, name) for name in _INDEX}
    return meta, index


def check(path, meta, schema, items):
    """Refuses the rows of another kind of replay.

    Args:
        path: path of the file, for the message.
        meta: dict, what `read_index` returned.
        schema: `Schema`.
        items: `Items`.
    """
    own = _comparable(_describe(schema, items))
    saved = _comparable({k: meta[k] for k in ("format", *_SIZES, "fields")})
    differ = [
        f"{name}: {own.get(name)} here, {saved.get(name)} in the file"
        for name in sorted(own.keys() | saved.keys())
        if own.get(name) != saved.get(name)
    ]
    if differ:
        raise ValueError(
            "A replay can only be loaded into one with the same number of "
            "environments, window length, spaces and latent sizes. Received: "
            f"{os.fspath(path)!r}, which differs in {'; '.join(differ)}. Make "
            "the replay with the config and environments of the saved one."
        )


def claim_rows(index, pool):
    """Makes room for the rows of an index, `(N,)` places in the pool."""
    located = pool.claim(held_ids(index["rows"], index["evicted"], pool.page))
    pool.files[located] = CHANGED
    return located


def restore(meta, index, items, pool, rng):
    """Makes what was read the state of a replay."""
    items.rows, items.evicted = index["rows"], index["evicted"]
    items.order.pop(len(items))
    items.order.push(index["order"])
    items.queue.clear()
    if items.online:
        items.queue.extend(index["queue"].tolist())
    items.evict()
    pool.release(items.evicted)
    rng.bit_generator.state = meta["rng"]


def held_ids(rows, evicted, page):
    """Returns the step ids of all rows in pages in use, stream by stream."""
    first = evicted // page * page
    return np.concatenate(
        [
            step_ids(stream, np.arange(first[stream], rows[stream]))
            for stream in range(len(rows))
        ]
    )


_SIZES = ("num_envs", "length")


def _describe(schema, items):
    return {
        "format": _FORMAT,
        "num_envs": len(items.rows),
        "length": items.length,
        "fields": schema.describe(),
    }


def _comparable(description):
    flat = {**description, **description["fields"]}
    del flat["fields"]
    if "context/deter" in flat:
        flat["context/deter"] = flat["context/deter"]["shape"]  # It is cast.
    return flat
