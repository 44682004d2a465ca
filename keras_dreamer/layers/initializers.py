"""Weight initialisation of every kernel."""

import math
import random
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_dreamer.tensor import Tensor


@keras.saving.register_keras_serializable(package="keras_dreamer")
class FanInTruncatedNormal(keras.initializers.Initializer):
    """Truncated normal whose variance is that of one over the input width.

        kernel = scale * 1.1368 * sqrt(1 / fan_in) * TruncatedNormal(-2, 2)

    For a block kernel `(blocks, in, out)`, `fan_in` is the whole input width
    `blocks * in`. Drawn with NumPy, so that a seed gives the same weights on
    every backend.

    Source: `embodied/jax/nets.py` of danijar/dreamerv3 at e3f0224; item 1.5.

    Args:
        scale: float. The `outscale` of output layers; 0 gives zeros.
        seed: int or `None` for a seed drawn from Python's generator, which
            `keras.utils.set_random_seed` seeds.

    Example:

    >>> initializer = keras_dreamer.layers.FanInTruncatedNormal(seed=0)
    >>> tuple(initializer((8, 4, 2)).shape)
    (8, 4, 2)
    """

    def __init__(self, scale: float = 1.0, seed: int | None = None) -> None:
        self.scale = scale
        self.seed = random.randrange(2**31) if seed is None else seed

    def __call__(
        self, shape: Sequence[int], dtype: str | None = None
    ) -> Tensor:
        fan_in = math.prod(shape[:-1])
        std = self.scale * 1.1368 * math.sqrt(1.0 / fan_in)
        values = _truncated_normal(np.random.default_rng(self.seed), shape)
        return ops.convert_to_tensor(std * values, dtype or "float32")

    def get_config(self) -> dict[str, Any]:
        return {"scale": self.scale, "seed": self.seed}


def _truncated_normal(rng, shape):
    values = rng.standard_normal(shape)
    outside = np.abs(values) > 2
    while outside.any():
        values[outside] = rng.standard_normal(np.count_nonzero(outside))
        outside = np.abs(values) > 2
    return values


def spread_seeds(seed, count):
    """Returns `count` independent seeds, or as many `None` for `None`."""
    if seed is None:
        return [None] * count
    state = np.random.SeedSequence(seed).generate_state(count)
    return [int(word) for word in state]
