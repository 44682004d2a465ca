"""Block-diagonal dense layer, the projection inside the RSSM's recurrence."""

from typing import Any

import keras
from keras import ops

from keras_dreamer.layers.blocks import block_dense
from keras_dreamer.layers.initializers import FanInTruncatedNormal
from keras_dreamer.tensor import Shape
from keras_dreamer.tensor import Tensor


@keras.saving.register_keras_serializable(package="keras_dreamer")
class BlockDense(keras.layers.Layer):
    """Dense layer with a block-diagonal kernel.

    The features are cut into `blocks` equal groups and every group has its
    own kernel, so the layer holds `blocks` times fewer weights than `Dense`:

        y[g] = x[g] @ kernel[g] + bias[g]        for g in 0 .. blocks - 1

    Source: DreamerV3 (https://arxiv.org/abs/2301.04104v2), p. 18; item 1.2.

    Args:
        units: int. Number of output features over all groups. A multiple of
            `blocks`.
        blocks: int. Number of groups.
        seed: int or `None`. Seed of the kernel's initial values.

    Call arguments:
        inputs: `(..., features)` tensor, `features` a multiple of `blocks`.

    Returns:
        `(..., units)` tensor.

    Example:

    >>> layer = keras_dreamer.layers.BlockDense(units=6, blocks=2)
    >>> tuple(layer(keras.ops.ones((3, 4))).shape)
    (3, 6)
    """

    def __init__(
        self, units: int, blocks: int, seed: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if units % blocks:
            raise ValueError(
                "`units` must be a multiple of `blocks`, so that every group "
                f"has the same size. Received: units={units}, blocks={blocks}."
                f" The nearest valid value is units={units - units % blocks}."
            )
        self.units = units
        self.blocks = blocks
        self.seed = seed

    def build(self, input_shape: Shape) -> None:
        features = input_shape[-1]
        if features % self.blocks:
            raise ValueError(
                "The input features must be a multiple of `blocks`. Received: "
                f"features={features}, blocks={self.blocks}. Pad the input or "
                "choose another number of blocks."
            )
        self.kernel = self.add_weight(
            name="kernel",
            shape=(
                self.blocks,
                features // self.blocks,
                self.units // self.blocks,
            ),
            initializer=FanInTruncatedNormal(seed=self.seed),
        )
        self.bias = self.add_weight(
            name="bias", shape=(self.units,), initializer="zeros"
        )

    def call(self, inputs: Tensor) -> Tensor:
        tensors = {
            "kernel": ops.cast(self.kernel, inputs.dtype),
            "bias": ops.cast(self.bias, inputs.dtype),
        }
        return block_dense(tensors, inputs)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return (*input_shape[:-1], self.units)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        return {
            **config,
            "units": self.units,
            "blocks": self.blocks,
            "seed": self.seed,
        }
