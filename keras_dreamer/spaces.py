"""Gymnasium spaces as flat dictionaries of vectors for the model.

A space, however nested, becomes one flat dictionary: nested `Dict` and `Tuple`
entries are joined by "/" ("arm/angles", "pair/0"), and a space that is not a
`Dict` gets the one key "observation" or "action". Every entry is either
continuous (float32) or discrete (int32, counted from 0).
"""

import dataclasses
import math
from typing import Any

import numpy as np
from gymnasium import spaces

from keras_dreamer.space_config import from_config as from_config
from keras_dreamer.space_config import to_config as to_config
from keras_dreamer.space_entries import is_discrete as is_discrete
from keras_dreamer.space_entries import make_entry
from keras_dreamer.space_entries import start as start


@dataclasses.dataclass(frozen=True)
class Leaf:
    """One flat entry of an observation or action space.

    Attributes:
        key: str. Name of the entry, nested names joined by "/".
        kind: str. "continuous" or "discrete".
        shape: tuple of ints. Shape of one time step, without classes.
        sizes: tuple of ints. Number of classes of each discrete variable,
            flattened over `shape`; empty for a continuous entry.
    """

    key: str
    kind: str
    shape: tuple[int, ...]
    sizes: tuple[int, ...] = ()

    @property
    def discrete(self) -> bool:
        """Whether the entry holds classes."""
        return self.kind == "discrete"

    @property
    def classes(self) -> int:
        """Largest number of classes of a variable, 0 when continuous."""
        return max(self.sizes, default=0)

    @property
    def size(self) -> int:
        """Number of scalars or variables in one time step."""
        return math.prod(self.shape)

    @property
    def width(self) -> int:
        """Number of encoded features: one per scalar, or one-hot classes."""
        return self.size * self.classes if self.discrete else self.size

    @property
    def dtype(self) -> str:
        """Name of the dtype inside the model."""
        return "int32" if self.discrete else "float32"


def leaves(space: spaces.Space, name: str) -> dict[str, Leaf]:
    """Lists the flat entries of a space.

    `Box` of floats or integers is continuous. `Discrete`, `MultiDiscrete`,
    `MultiBinary` and a `Box` of bools are discrete.

    Args:
        space: gymnasium space of a single environment.
        name: str. "observation" or "action": the key of a space that is not a
            `Dict`, and the word used in errors.

    Returns:
        Dict from key to `Leaf`, sorted by key.
    """
    found = {}
    for key, leaf_space, _ in entries(space, space, name):
        if key in found:
            raise ValueError(
                f"Every entry of the {name} space needs its own name after "
                "nested names are joined by '/'. Received two entries with "
                f"key={key!r}. Rename one of them."
            )
        found[key] = _leaf(leaf_space, key, name)
    if not found:
        raise ValueError(
            f"The {name} space needs at least one entry. Received: "
            f"space={space}. Add a Box or Discrete space to it."
        )
    return dict(sorted(found.items()))


def to_model(
    space: spaces.Space, value: Any, name: str, lead: int = 1
) -> dict[str, np.ndarray]:
    """Turns values of an environment into what the model stores and sees.

    Continuous entries are cast to float32, discrete ones count from 0 as
    int32 (`start` is subtracted). Values are not checked. An unavailable key
    is marked by -inf, or by -1 after the subtraction.

    Args:
        space: gymnasium space of a single environment.
        value: nest of arrays, each `(..., *shape)` with `lead` leading axes.
        name: str. "observation" or "action".
        lead: int. Number of leading batch axes.

    Returns:
        Dict from key to a `(..., *shape)` float32 or int32 array, sorted by
        key. Arrays that have the right dtype already are not copied.
    """
    return Converter(space, name).to_model(value, lead)


def from_model(
    space: spaces.Space, values: dict[str, np.ndarray], name: str
) -> Any:
    """Turns samples of the policy into actions of an environment.

    Continuous entries are clipped to [-1, 1] and scaled to the bounds of the
    space, which -1 and 1 reach exactly; integer spaces get rounded values:

        action = low + (clip(x, -1, 1) + 1) / 2 * (high - low)

    A dimension that lacks a finite bound has no scale: the clipped value in
    [-1, 1] is sent as it is, clipped to the finite bound if there is one.
    Wrap the environment with `gymnasium.wrappers.RescaleAction` to choose
    another range. Discrete entries count from `start` again.

    Args:
        space: gymnasium space of a single environment.
        values: dict from key to a `(N, *shape)` array.
        name: str. "observation" or "action".

    Returns:
        Nest like the space of `(N, *shape)` arrays in the space's dtypes.
    """
    return Converter(space, name).from_model(values)


class Converter:
    """`to_model` and `from_model` of one space, prepared for a loop.

    To look at the space takes longer than to convert a row of values.

    Args:
        space: gymnasium space of a single environment.
        name: str. "observation" or "action".
    """

    def __init__(self, space: spaces.Space, name: str) -> None:
        self.space = space
        self.name = name
        found = {key: leaf for key, leaf, _ in entries(space, space, name)}
        self._entries = {key: make_entry(found[key]) for key in sorted(found)}

    def to_model(self, value: Any, lead: int = 1) -> dict[str, np.ndarray]:
        """See `keras_dreamer.spaces.to_model`."""
        given = {
            key: np.asarray(array)
            for key, _, array in entries(self.space, value, self.name)
        }
        for key, entry in self._entries.items():
            _check_shape(key, given[key].shape, entry.shape, lead)
        return {
            key: entry.to_model(given[key])
            for key, entry in self._entries.items()
        }

    def from_model(self, values: dict[str, np.ndarray]) -> Any:
        """See `keras_dreamer.spaces.from_model`."""
        return build(
            self.space,
            self.name,
            lambda key, _: self._entries[key].from_model(values[key]),
        )


def entries(space, nest, name):
    """Yields `(key, space, entry of nest)` of every entry of a space.

    A space can be indexed like its values, so it may be the nest as well.
    """
    return _walk(space, nest, _root(space, name))


def build(space, name, function):
    """Returns a nest like the space of `function(key, space of the entry)`."""
    return _build(space, _root(space, name), function)


def _root(space, name):
    return "" if isinstance(space, spaces.Dict) else name


def _join(key, child):
    return f"{key}/{child}" if key else child


def _children(space):
    """Returns the `(name, space)` pairs of a nested space, None for a leaf."""
    if isinstance(space, spaces.Dict):
        return space.spaces.items()
    if isinstance(space, spaces.Tuple):
        return enumerate(space.spaces)
    return None


def _walk(space, nest, key):
    children = _children(space)
    if children is None:
        yield key, space, nest
        return
    for child, subspace in children:
        path = _join(key, child)
        try:
            entry = nest[child]
        except (KeyError, IndexError, TypeError):
            raise ValueError(
                f"A value of the space needs the entry {path!r}. Received: "
                f"{_brief(nest)}. Pass a nest shaped like the space."
            ) from None
        yield from _walk(subspace, entry, path)


def _brief(nest):
    if isinstance(nest, dict):
        return f"the keys {sorted(map(str, nest))}"
    return f"a {type(nest).__name__}"


def _build(space, key, function):
    if isinstance(space, spaces.Dict):
        return {
            child: _build(subspace, _join(key, child), function)
            for child, subspace in space.spaces.items()
        }
    if isinstance(space, spaces.Tuple):
        return tuple(
            _build(subspace, _join(key, child), function)
            for child, subspace in enumerate(space.spaces)
        )
    return function(key, space)


def _sizes(space):
    if isinstance(space, spaces.Discrete):
        return (int(space.n),)
    if isinstance(space, spaces.MultiDiscrete):
        return tuple(space.nvec.ravel().tolist())
    return (2,) * math.prod(space.shape)


def _leaf(space, key, name):
    where = f"{name} entry {key!r}"
    if not (isinstance(space, spaces.Box) or is_discrete(space)):
        raise ValueError(
            f"The {where} needs to be a Box, Discrete, MultiDiscrete, "
            f"MultiBinary, Dict or Tuple. Received: {type(space).__name__}, "
            f"{space}. Convert it to one of these in a "
            "`gymnasium.ObservationWrapper`, or remove it."
        )
    if 0 in space.shape:
        raise ValueError(
            f"The {where} needs at least one element. Received: "
            f"shape={space.shape}. Remove it from the space."
        )
    if is_discrete(space):
        return Leaf(key, "discrete", space.shape, _sizes(space))
    if space.dtype == np.uint8 and len(space.shape) == 3:
        raise ValueError(
            f"The {where} looks like a picture, and only vectors are "
            f"supported. Received: shape={space.shape}, dtype=uint8. Declare "
            "another dtype or a flat shape if it is none, or drop the key."
        )
    return Leaf(key, "continuous", space.shape)


def _check_shape(key, given, shape, lead):
    if len(given) < lead or given[lead:] != shape:
        raise ValueError(
            f"The entry {key!r} needs {lead} batch axes and then the shape "
            f"{shape} of its space. Received: shape={given}. "
            "Add the missing axes, or correct the space."
        )
