"""Head for continuous actions: a normal with bounded mean and width."""

import math
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_dreamer.distributions import Normal
from keras_dreamer.layers.float32_layer import Float32Layer
from keras_dreamer.layers.functional import dense
from keras_dreamer.layers.initializers import spread_seeds
from keras_dreamer.layers.mlp import linear
from keras_dreamer.tensor import Shape
from keras_dreamer.tensor import Tensor


@keras.saving.register_keras_serializable(package="keras_dreamer")
class BoundedNormal(Float32Layer):
    """Predicts mean and standard deviation of a normal distribution.

        mean = tanh(dense(x))
        std = (maxstd - minstd) * sigmoid(dense(x) + 2) + minstd

    The distribution is not squashed: samples may leave [-1, 1].

    Source: `embodied/jax/heads.py` of danijar/dreamerv3 at e3f0224;
    item 3.13.

    Args:
        shape: tuple of ints. Shape of one action.
        minstd: float. Smallest standard deviation.
        maxstd: float. Largest standard deviation.
        outscale: float. Scale of the kernels' initial values.
        seed: int or `None`. Seed of the kernels' initial values.

    Call arguments:
        inputs: `(..., features)` tensor.

    Returns:
        Two `(..., *shape)` float32 tensors, mean and standard deviation.
        `distribution(mean, std)` gives the `Normal`.

    Example:

    >>> head = keras_dreamer.layers.BoundedNormal((3,))
    >>> mean, std = head(keras.ops.ones((2, 4)))
    >>> tuple(mean.shape), tuple(std.shape)
    ((2, 3), (2, 3))
    """

    def __init__(
        self,
        shape: Sequence[int],
        minstd: float = 0.1,
        maxstd: float = 1.0,
        outscale: float = 0.01,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not 0.0 < minstd <= maxstd:
            raise ValueError(
                "`minstd` must be positive and at most `maxstd`. Received: "
                f"minstd={minstd}, maxstd={maxstd}. The recipe uses 0.1 and "
                "1.0."
            )
        self.shape = tuple(shape)
        self.minstd = minstd
        self.maxstd = maxstd
        self.outscale = outscale
        self.seed = seed
        width = math.prod(self.shape)
        first, last = spread_seeds(seed, 2)
        self.mean_layer = linear(width, outscale, first, self.dtype_policy)
        self.std_layer = linear(width, outscale, last, self.dtype_policy)

    def named_layers(self) -> dict[str, Any]:
        return {"mean": self.mean_layer, "stddev": self.std_layer}

    def build(self, input_shape: Shape) -> None:
        self.mean_layer.build(input_shape)
        self.std_layer.build(input_shape)

    def apply(
        self, tensors: dict[str, Any], inputs: Tensor
    ) -> tuple[Tensor, Tensor]:
        mean = ops.tanh(dense(tensors["mean"], inputs))
        std = ops.sigmoid(dense(tensors["stddev"], inputs) + 2.0)
        std = (self.maxstd - self.minstd) * std + self.minstd
        shape = (*ops.shape(inputs)[:-1], *self.shape)
        return tuple(
            ops.reshape(ops.cast(x, "float32"), shape) for x in (mean, std)
        )

    def distribution(self, mean: Tensor, std: Tensor) -> Normal:
        """Returns the `Normal` of what `call` returned."""
        return Normal(mean, std, len(self.shape))

    def compute_output_shape(self, input_shape: Shape) -> tuple[Shape, Shape]:
        shape = (*input_shape[:-1], *self.shape)
        return shape, shape

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "shape": self.shape,
            "minstd": self.minstd,
            "maxstd": self.maxstd,
            "outscale": self.outscale,
            "seed": self.seed,
        }
