"""From observations and actions to the features of a network."""

import math

from keras import ops


def available(leaf, value):
    """Tells which samples have a key at all (item 1.7).

    A key is missing where any of its elements is -inf, or -1 for integers.

    Args:
        leaf: `Leaf` of the key.
        value: `(..., *shape)` tensor.

    Returns:
        `(...)` bool tensor.
    """
    present = value != (-1 if leaf.discrete else -math.inf)
    if not leaf.shape:
        return present
    return ops.all(present, axis=tuple(range(-len(leaf.shape), 0)))


def concat_inputs(leaves, values, dtype, squash=None):
    """Encodes and concatenates the keys of an observation or action.

    Integers become one-hot, numbers pass through `squash`, and the features
    of a key that is not available in a sample are zero.

    Source: `DictConcat` in `embodied/jax/nets.py` of danijar/dreamerv3 at
    e3f0224; item 1.7.

    Args:
        leaves: dict of `Leaf`, used in alphabetical order.
        values: dict of `(..., *shape)` tensors.
        dtype: str. Dtype of the features.
        squash: `None` or function of float32 tensors.

    Returns:
        `(..., features)` tensor.
    """
    features = [
        _encode(leaf, values[key], dtype, squash)
        for key, leaf in sorted(leaves.items())
    ]
    return ops.concatenate(features, axis=-1)


def _encode(leaf, value, dtype, squash):
    batch = ops.shape(value)[: len(value.shape) - len(leaf.shape)]
    present = available(leaf, value)
    mask = present[(..., *(None,) * len(leaf.shape))]
    value = ops.where(mask, value, ops.zeros_like(value))
    if leaf.discrete:
        value = ops.one_hot(value, leaf.classes, dtype=dtype)
    else:
        value = squash(value) if squash else value
    value = ops.reshape(ops.cast(value, dtype), (*batch, leaf.width))
    # Once more, since the code of class 0 is not zero.
    return value * ops.cast(present[..., None], dtype)
