"""The ways back: what the model stores as the environment's values."""

import numpy as np

from keras_dreamer import spaces


def observation_from_model(space, values):
    """Turns observations into those of an environment: `to_model` reversed.

    Args:
        space: gymnasium space of a single environment.
        values: dict from key to a `(N, *shape)` array.

    Returns:
        Nest like the space of `(N, *shape)` arrays in the space's dtypes.
    """

    def entry(key, leaf):
        value = np.asarray(values[key])
        if spaces.is_discrete(leaf):
            value = value.astype("int64") + spaces.start(leaf)
        return value.astype(leaf.dtype)

    return spaces.build(space, "observation", entry)


def action_to_model(space, action):
    """Turns actions into samples of the policy: `from_model` reversed.

    The bounds of a continuous entry become -1 and 1. A dimension that lacks
    a finite bound has no scale and stays as it is. A policy that exceeded the
    bounds was clipped to them, and so are its samples here.

    Args:
        space: gymnasium space of a single environment.
        action: nest like the space of `(N, *shape)` arrays.

    Returns:
        Dict from key to a `(N, *shape)` float32 or int32 array.
    """
    values = spaces.to_model(space, action, "action")
    for key, leaf, given in spaces.entries(space, action, "action"):
        if not spaces.is_discrete(leaf):
            values[key] = _unscale(leaf, np.asarray(given, "float64"))
    return values


def _unscale(space, values):
    bounded = space.bounded_below & space.bounded_above
    low = np.where(bounded, space.low, -1).astype("float64")
    high = np.where(bounded, space.high, 1).astype("float64")
    width = np.where(low == high, 1, high - low)
    unscaled = 2 * (values - low) / width - 1
    return np.where(bounded, unscaled, values).astype("float32")
