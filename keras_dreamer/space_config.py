"""Gymnasium spaces to and from JSON, for `.keras` files."""

import collections
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces


def to_config(space: spaces.Space) -> dict[str, Any]:
    """Describes a space by JSON types only.

    Args:
        space: gymnasium space: `Box`, `Discrete`, `MultiDiscrete`,
            `MultiBinary`, `Dict` or `Tuple`.

    Returns:
        Dict that `from_config` turns into an equal space. Infinite bounds are
        the strings "inf" and "-inf".
    """
    for kind, (describe, _) in _KINDS.items():
        if isinstance(space, kind):
            return {"type": kind.__name__, **describe(space)}
    raise ValueError(
        f"A space that is saved needs to be one of {_names()}. Received: "
        f"{type(space).__name__}, {space}. Convert it in a wrapper of the "
        "environment, or remove it."
    )


def from_config(config: Mapping[str, Any]) -> spaces.Space:
    """Builds the space that `to_config` described.

    Args:
        config: dict returned by `to_config`.

    Returns:
        gymnasium space.
    """
    fields = dict(config)
    name = fields.pop("type", None)
    for kind, (_, build) in _KINDS.items():
        if kind.__name__ == name:
            return build(**fields)
    raise ValueError(
        f"The config of a space needs a `type` out of {_names()}. Received: "
        f"type={name!r}. Pass what `to_config` returned."
    )


def _names():
    return [kind.__name__ for kind in _KINDS]


def _describe_box(space):
    low = np.where(space.bounded_below, space.low.astype(object), "-inf")
    high = np.where(space.bounded_above, space.high.astype(object), "inf")
    return {
        "low": _compact(low),
        "high": _compact(high),
        "shape": list(space.shape),
        "dtype": space.dtype.name,
    }


def _compact(bound):
    flat = bound.ravel().tolist()
    return flat[0] if len(set(flat)) == 1 else flat


def _build_box(low, high, shape, dtype):
    dtype = np.dtype(dtype)
    low, below = _expand(low, shape, dtype, "-inf")
    high, above = _expand(high, shape, dtype, "inf")
    space = spaces.Box(low, high, dtype=dtype)
    # An integer bound at infinity is stored as the limit of its dtype.
    space.bounded_below, space.bounded_above = below, above
    return space


def _expand(bound, shape, dtype, infinity):
    """Returns the bound as an array, and where it is finite."""
    values = np.empty(math.prod(shape), object)
    values[:] = bound
    finite = np.array([value != infinity for value in values], bool)
    if dtype.kind == "f":
        values[~finite] = float(infinity)
    elif not finite.all():
        limits = np.iinfo(dtype)
        values[~finite] = limits.min if infinity == "-inf" else limits.max
    return values.astype(dtype).reshape(shape), finite.reshape(shape)


def _describe_discrete(space):
    config = {"n": int(space.n), "start": int(space.start)}
    # Old gymnasium versions know no other dtype, nor the argument.
    if space.dtype != np.int64:
        config["dtype"] = space.dtype.name
    return config


def _describe_multi_discrete(space):
    return {
        "nvec": space.nvec.tolist(),
        "start": space.start.tolist(),
        "dtype": space.dtype.name,
    }


def _describe_multi_binary(space):
    return {"n": space.n if isinstance(space.n, int) else list(space.n)}


def _describe_dict(space):
    entries = space.spaces.items()
    return {"entries": {key: to_config(entry) for key, entry in entries}}


def _build_dict(entries):
    return spaces.Dict(
        collections.OrderedDict(
            (key, from_config(entry)) for key, entry in entries.items()
        )
    )


def _describe_tuple(space):
    return {"entries": [to_config(entry) for entry in space.spaces]}


def _build_tuple(entries):
    return spaces.Tuple(from_config(entry) for entry in entries)


_KINDS = {
    spaces.Box: (_describe_box, _build_box),
    spaces.Discrete: (_describe_discrete, spaces.Discrete),
    spaces.MultiDiscrete: (_describe_multi_discrete, spaces.MultiDiscrete),
    spaces.MultiBinary: (_describe_multi_binary, spaces.MultiBinary),
    spaces.Dict: (_describe_dict, _build_dict),
    spaces.Tuple: (_describe_tuple, _build_tuple),
}
