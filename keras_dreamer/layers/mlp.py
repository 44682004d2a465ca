"""Hidden layers of the encoder, the decoder and all heads."""

from typing import Any

import keras

from keras_dreamer.layers.functional import FunctionalLayer
from keras_dreamer.layers.functional import dense
from keras_dreamer.layers.functional import hidden
from keras_dreamer.layers.functional import norm_silu
from keras_dreamer.layers.initializers import FanInTruncatedNormal
from keras_dreamer.layers.initializers import spread_seeds
from keras_dreamer.layers.rms_norm import RMSNorm
from keras_dreamer.tensor import Shape
from keras_dreamer.tensor import Tensor


@keras.saving.register_keras_serializable(package="keras_dreamer")
class MLP(FunctionalLayer):
    """Stack of hidden layers, each dense, RMS norm and SiLU.

    Source: DreamerV3 (https://arxiv.org/abs/2301.04104v2), p. 18 and Table 4;
    items 1.3 and 1.4.

    Args:
        layers: int. Number of hidden layers.
        units: int. Width of each.
        seed: int or `None`. Seed of the kernels' initial values.
        dense_name: str. Pattern of the official names of the dense layers.
        norm_name: str. Pattern of the official names of the norms.

    Call arguments:
        inputs: `(..., features)` tensor.

    Returns:
        `(..., units)` tensor.

    Example:

    >>> mlp = keras_dreamer.layers.MLP(layers=2, units=8)
    >>> tuple(mlp(keras.ops.ones((3, 4))).shape)
    (3, 8)
    """

    def __init__(
        self,
        layers: int,
        units: int,
        seed: int | None = None,
        dense_name: str = "linear{}",
        norm_name: str = "norm{}",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if layers < 1:
            raise ValueError(
                "`layers` must be at least 1. Received: "
                f"layers={layers}. Leave the MLP out instead."
            )
        self.layers = layers
        self.units = units
        self.seed = seed
        self.dense_name = dense_name
        self.norm_name = norm_name
        self.denses = [
            linear(units, seed=seed, dtype=self.dtype_policy)
            for seed in spread_seeds(seed, layers)
        ]
        self.norms = [RMSNorm(dtype=self.dtype_policy) for _ in range(layers)]

    def named_layers(self) -> dict[str, Any]:
        named = {}
        for index, pair in enumerate(zip(self.denses, self.norms, strict=True)):
            named[self.dense_name.format(index)] = pair[0]
            named[self.norm_name.format(index)] = pair[1]
        return named

    def build(self, input_shape: Shape) -> None:
        shape = input_shape
        for layer, norm in zip(self.denses, self.norms, strict=True):
            layer.build(shape)
            shape = (*shape[:-1], self.units)
            norm.build(shape)

    def apply(self, tensors: dict[str, Any], x: Tensor) -> Tensor:
        return self.finish(tensors, dense(self.first(tensors), x))

    def first(self, tensors: dict[str, Any]) -> dict[str, Any]:
        """Returns the weights of the first dense layer."""
        return tensors[self.dense_name.format(0)]

    def finish(self, tensors: dict[str, Any], x: Tensor) -> Tensor:
        """Continues from the output of the first dense layer."""
        x = norm_silu(tensors[self.norm_name.format(0)], x)
        for index in range(1, self.layers):
            dense_tensors = tensors[self.dense_name.format(index)]
            norm_tensors = tensors[self.norm_name.format(index)]
            x = hidden(dense_tensors, norm_tensors, x)
        return x

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return (*input_shape[:-1], self.units)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "layers": self.layers,
            "units": self.units,
            "seed": self.seed,
            "dense_name": self.dense_name,
            "norm_name": self.norm_name,
        }


class MLPHead(FunctionalLayer):
    """Layer that is an MLP, `self.mlp`, and an output layer.

    A subclass gives its mathematics in `finish`. Where several heads take
    the same input their first dense layers are one product, computed
    elsewhere.
    """

    def apply(self, tensors: dict[str, Any], inputs: Tensor) -> Any:
        return self.finish(tensors, dense(self.first(tensors), inputs))

    def first(self, tensors: dict[str, Any]) -> dict[str, Any]:
        """Returns the weights of the first dense layer."""
        return self.mlp.first(tensors["mlp"])

    def finish(self, tensors: dict[str, Any], x: Tensor) -> Any:
        """Returns the outputs, from the output of the first dense layer."""
        raise NotImplementedError


def linear(units, outscale=1.0, seed=None, dtype=None):
    """Returns a dense layer with the recipe's initial weights (item 1.5)."""
    return keras.layers.Dense(
        units,
        kernel_initializer=FanInTruncatedNormal(outscale, seed),
        dtype=dtype,
    )
