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
