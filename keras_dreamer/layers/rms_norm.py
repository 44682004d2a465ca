"""Root mean square normalisation with float32 statistics and scale."""

from typing import Any

import keras

from keras_dreamer.layers import functional
from keras_dreamer.tensor import Shape
from keras_dreamer.tensor import Tensor


@keras.saving.register_keras_serializable(package="keras_dreamer")
class RMSNorm(keras.layers.Layer):
    """Divides features by their root mean square.

        y = x * rsqrt(mean(x ** 2) + epsilon) * scale

    Statistics and scale are float32 under every dtype policy, which
    `keras.layers.RMSNormalization` rounds to the compute dtype.

    Source: DreamerV3 (https://arxiv.org/abs/2301.04104v2), Table 4; item 1.3.

    Args:
        epsilon: float. Added to the mean of the squares.

    Call arguments:
        inputs: `(..., features)` tensor.

    Returns:
        `(..., features)` tensor of the inputs' dtype.

    Example:

    >>> norm = keras_dreamer.layers.RMSNorm()
    >>> tuple(norm(keras.ops.ones((2, 4))).shape)
    (2, 4)
    """

    def __init__(self, epsilon: float = 1e-4, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.epsilon = epsilon

    def build(self, input_shape: Shape) -> None:
        self.scale = self.add_weight(
            name="scale",
            shape=(input_shape[-1],),
            initializer="ones",
            dtype="float32",
            autocast=False,
        )

    def call(self, inputs: Tensor) -> Tensor:
        return functional.rms_norm({"scale": self.scale}, inputs, self.epsilon)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return input_shape

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "epsilon": self.epsilon}
