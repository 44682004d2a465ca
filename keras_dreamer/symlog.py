"""Symmetric logarithm and its inverse."""

from keras import ops


def symlog(x):
    """Symmetric logarithm, `sign(x) * log(1 + |x|)`.

    Source: DreamerV3 (https://arxiv.org/abs/2301.04104v2), Eq. 9; item 1.6.

    Args:
        x: `(...)` float32 tensor.

    Returns:
        `(...)` float32 tensor.
    """
    return ops.sign(x) * ops.log1p(ops.abs(x))


def symexp(x):
    """Inverse of `symlog`, `sign(x) * (exp(|x|) - 1)`.

    Source: DreamerV3 (https://arxiv.org/abs/2301.04104v2), Eq. 9; item 1.6.

    Args:
        x: `(...)` float32 tensor.

    Returns:
        `(...)` float32 tensor.
    """
    return ops.sign(x) * ops.expm1(ops.abs(x))
