"""Head for rewards and values: two-hot regression on symexp bins."""

from typing import Any

import keras

from keras_dreamer.layers.functional import dense
from keras_dreamer.layers.initializers import spread_seeds
from keras_dreamer.layers.mlp import MLP
from keras_dreamer.layers.mlp import MLPHead
from keras_dreamer.layers.mlp import linear
from keras_dreamer.losses.two_hot import TwoHot
from keras_dreamer.losses.two_hot import symexp_bins
from keras_dreamer.tensor import Shape
from keras_dreamer.tensor import Tensor


@keras.saving.register_keras_serializable(package="keras_dreamer")
class TwoHotHead(MLPHead):
    """Predicts a real number of any size as a distribution over bins.

    Source: DreamerV3 (https://arxiv.org/abs/2301.04104v2), Eq. 10 to 12;
    items 1.9, 2.12 and 3.16.

    Args:
        layers: int. Number of hidden layers.
        units: int. Width of each.
        bins: int. Number of bins, odd.
        outscale: float. Scale of the output kernel's initial values. With 0
            the first predictions are exactly 0.
        seed: int or `None`. Seed of the kernels' initial values.

    Call arguments:
        inputs: `(..., features)` tensor.

    Returns:
        `(..., bins)` logits in the compute dtype. `distribution(logits)`
        gives the `TwoHot` with `mean()` and `loss(target)`.

    Example:

    >>> head = keras_dreamer.layers.TwoHotHead(layers=1, units=8)
    >>> logits = head(keras.ops.ones((2, 4)))
    >>> mean = head.distribution(logits).mean()
    >>> keras.ops.convert_to_numpy(mean).tolist()
    [0.0, 0.0]
    """

    def __init__(
        self,
        layers: int = 1,
        units: int = 256,
        bins: int = 255,
        outscale: float = 0.0,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.bins = bins
        self.outscale = outscale
        self.seed = seed
        first, last = spread_seeds(seed, 2)
        self.bin_values = symexp_bins(bins)
        self.mlp = MLP(layers, units, first, dtype=self.dtype_policy)
        self.output_layer = linear(bins, outscale, last, self.dtype_policy)

    def named_layers(self) -> dict[str, Any]:
        return {"mlp": self.mlp, "head": {"logits": self.output_layer}}

    def build(self, input_shape: Shape) -> None:
        self.mlp.build(input_shape)
        self.output_layer.build((*input_shape[:-1], self.mlp.units))

    def finish(self, tensors: dict[str, Any], x: Tensor) -> Tensor:
        x = self.mlp.finish(tensors["mlp"], x)
        return dense(tensors["head"]["logits"], x)

    def distribution(self, logits: Tensor) -> TwoHot:
        """Returns the `TwoHot` distribution of `(..., bins)` logits."""
        return TwoHot(logits, self.bin_values)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return (*input_shape[:-1], self.bins)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "layers": self.mlp.layers,
            "units": self.mlp.units,
            "bins": self.bins,
            "outscale": self.outscale,
            "seed": self.seed,
        }
