"""Small helpers that several test modules share."""

import json
import pathlib

from keras import ops

GOLDEN = pathlib.Path(__file__).parent / "golden"


def to_numpy(x):
    """Returns a tensor or variable of any backend as a NumPy array."""
    return ops.convert_to_numpy(ops.stop_gradient(ops.convert_to_tensor(x)))


def trace(name):
    """Returns one entry of the reference's traces."""
    return json.loads((GOLDEN / "traces.json").read_text())[name]


def damage(path, how):
    """Takes a file away, and puts half of it or a changed one in its place.

    Args:
        path: path of the file. Other hard links to it stay as they are.
        how: "cut", "change" or anything else, for no file.
    """
    content = bytearray(path.read_bytes())
    path.unlink()
    if how == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif how == "change":
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
