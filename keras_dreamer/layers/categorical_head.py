"""Head for discrete actions."""

import math
from typing import Any

import keras
import numpy as np
from keras import ops
from numpy.typing import ArrayLike

from keras_dreamer.distributions import Categorical
from keras_dreamer.layers.float32_layer import Float32Layer
from keras_dreamer.layers.functional import dense
from keras_dreamer.layers.mlp import linear
from keras_dreamer.tensor import Shape
from keras_dreamer.tensor import Tensor


@keras.saving.register_keras_serializable(package="keras_dreamer")
class CategoricalHead(Float32Layer):
    """Predicts the logits of one or several categorical variables.

    Variables may have different numbers of classes, as those of
    `gymnasium.spaces.MultiDiscrete`: each gets logits for the largest
    number, and `distribution` gives no probability to the surplus.

    Source: DreamerV3 (https://arxiv.org/abs/2301.04104v2), p. 18; item 3.14.

    Args:
        sizes: int or nested sequence of ints. Number of classes of each
            variable; its shape is that of one action.
        unimix: float in `[0, 1]`. Share of the uniform distribution.
        outscale: float. Scale of the kernel's initial values.
        seed: int or `None`. Seed of the kernel's initial values.

    Call arguments:
        inputs: `(..., features)` tensor.

    Returns:
        `(..., *shape, classes)` float32 logits. `distribution(logits)` gives
        the `Categorical`.

    Example:

    >>> head = keras_dreamer.layers.CategoricalHead(sizes=[3, 2])
    >>> tuple(head(keras.ops.ones((4, 8))).shape)
    (4, 2, 3)
    """

    def __init__(
        self,
        sizes: ArrayLike,
        unimix: float = 0.01,
        outscale: float = 0.01,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.sizes = np.asarray(sizes, "int32")
        if self.sizes.size == 0 or self.sizes.min() < 1:
            raise ValueError(
                "`sizes` must name at least one variable, each with at least "
                f"one class. Received: sizes={sizes}. Remove empty variables."
            )
        self.unimix = unimix
        self.outscale = outscale
        self.seed = seed
        self.classes = int(self.sizes.max())
        width = math.prod(self.sizes.shape) * self.classes
        self.output_layer = linear(width, outscale, seed, self.dtype_policy)

    def named_layers(self) -> dict[str, Any]:
        return {"logits": self.output_layer}

    def build(self, input_shape: Shape) -> None:
        self.output_layer.build(input_shape)

    def apply(self, tensors: dict[str, Any], inputs: Tensor) -> Tensor:
        logits = ops.cast(dense(tensors["logits"], inputs), "float32")
        shape = (*ops.shape(inputs)[:-1], *self.sizes.shape, self.classes)
        return ops.reshape(logits, shape)

    def distribution(self, logits: Tensor) -> Categorical:
        """Returns the `Categorical` of what `call` returned."""
        return Categorical(
            logits, self.unimix, len(self.sizes.shape), self.sizes
        )

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return (*input_shape[:-1], *self.sizes.shape, self.classes)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "sizes": self.sizes.tolist(),
            "unimix": self.unimix,
            "outscale": self.outscale,
            "seed": self.seed,
        }
