"""The entries of spaces, and the ways between environment and model."""

import numpy as np
from gymnasium import spaces

_HUGE = 1e300  # Times a sample of the policy it may overflow.


def is_discrete(space: spaces.Space) -> bool:
    """Tells whether an entry of a space holds classes."""
    if isinstance(space, spaces.Box):
        return space.dtype.kind == "b"
    kinds = spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary
    return isinstance(space, kinds)


def start(space: spaces.Space) -> int | np.int64 | np.ndarray:
    """Returns the number of the first class, an int or an array."""
    kinds = spaces.Discrete, spaces.MultiDiscrete
    return np.int64(space.start) if isinstance(space, kinds) else 0


class Classes:
    """An entry of classes, which count from 0 inside the model.

    Args:
        space: discrete gymnasium space.
    """

    def __init__(self, space):
        self.shape, self.dtype = space.shape, space.dtype
        self.start = start(space)

    def to_model(self, array):
        return (array.astype("int64") - self.start).astype("int32")

    def from_model(self, values):
        return (np.asarray(values, "int64") + self.start).astype(self.dtype)


class BoundedNumbers:
    """An entry of floats between bounds, the usual action.

    Args:
        space: `Box` of floats, with two bounds that are not huge everywhere.
    """

    def __init__(self, space):
        self.shape, self.dtype = space.shape, space.dtype
        self.low = space.low.astype("float64")
        self.high = space.high.astype("float64")

    def to_model(self, array):
        return array.astype("float32", copy=False)

    def from_model(self, values):
        share = (np.asarray(values, "float64") + 1) / 2
        scaled = (1 - share) * self.low + share * self.high
        # What exceeds [-1, 1] exceeds the bounds.
        return _clip(scaled, self.low, self.high).astype(self.dtype)


class Numbers:
    """An entry of integers, or of floats that may lack bounds or reach far.

    Args:
        space: `Box` of numbers.
    """

    def __init__(self, space):
        self.shape, self.space = space.shape, space

    def to_model(self, array):
        return array.astype("float32", copy=False)

    def from_model(self, values):
        space = self.space
        bounded = space.bounded_below & space.bounded_above
        values = _clip(np.asarray(values, "float64"), -1, 1)
        share = (values + 1) / 2
        low = np.where(bounded, space.low, -1).astype("float64")
        high = np.where(bounded, space.high, 1).astype("float64")
        scaled = np.where(bounded, (1 - share) * low + share * high, values)
        lowest = np.where(space.bounded_below, space.low, -np.inf)
        highest = np.where(space.bounded_above, space.high, np.inf)
        scaled = _clip(scaled, lowest, highest)
        if space.dtype.kind in "iu":
            scaled = np.rint(scaled)
        # Ends are copied: float64 cannot hold all large integers.
        end = bounded & (np.abs(values) == 1)
        ends = np.where(values < 0, space.low, space.high)
        return np.where(end, ends, np.where(end, 0, scaled).astype(space.dtype))


def make_entry(space: spaces.Space) -> Classes | BoundedNumbers | Numbers:
    """Returns the entry of a space that is neither a `Dict` nor a `Tuple`."""
    if is_discrete(space):
        return Classes(space)
    reach = float(np.abs([space.low, space.high]).max())
    if space.dtype.kind == "f" and reach < _HUGE:
        return BoundedNumbers(space)
    return Numbers(space)


def _clip(values, low, high):
    """Does what `np.clip` does in half the time: every step acts."""
    return np.minimum(np.maximum(values, low), high)
