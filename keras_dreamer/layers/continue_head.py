"""Head for the probability that an episode goes on."""

from typing import Any

import keras

from keras_dreamer.layers.functional import dense
from keras_dreamer.layers.initializers import spread_seeds
from keras_dreamer.layers.mlp import MLP
from keras_dreamer.layers.mlp import MLPHead
from keras_dreamer.layers.mlp import linear
from keras_dreamer.tensor import Shape
from keras_dreamer.tensor import Tensor


@keras.saving.register_keras_serializable(package="keras_dreamer")
class ContinueHead(MLPHead):
    """Predicts the logit of a Bernoulli variable.

    Source: DreamerV3 (https://arxiv.org/abs/2301.04104v2), p. 4; items 1.10
    and 2.13.

    Args:
        layers: int. Number of hidden layers.
        units: int. Width of each.
        seed: int or `None`. Seed of the kernels' initial values.

    Call arguments:
        inputs: `(..., features)` tensor.

    Returns:
        `(...)` tensor of logits in the compute dtype.

    Example:

    >>> head = keras_dreamer.layers.ContinueHead(layers=1, units=8)
    >>> tuple(head(keras.ops.ones((2, 4))).shape)
    (2,)
    """

    def __init__(
        self,
        layers: int = 1,
        units: int = 256,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.seed = seed
        first, last = spread_seeds(seed, 2)
        self.mlp = MLP(layers, units, first, dtype=self.dtype_policy)
        self.output_layer = linear(1, seed=last, dtype=self.dtype_policy)

    def named_layers(self) -> dict[str, Any]:
        return {"mlp": self.mlp, "head": {"logit": self.output_layer}}

    def build(self, input_shape: Shape) -> None:
        self.mlp.build(input_shape)
        self.output_layer.build((*input_shape[:-1], self.mlp.units))

    def finish(self, tensors: dict[str, Any], x: Tensor) -> Tensor:
        x = self.mlp.finish(tensors["mlp"], x)
        return dense(tensors["head"]["logit"], x)[..., 0]

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return tuple(input_shape[:-1])

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "layers": self.mlp.layers,
            "units": self.mlp.units,
            "seed": self.seed,
        }
