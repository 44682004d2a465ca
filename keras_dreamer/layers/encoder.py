"""Encoder of vector observations."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import keras

from keras_dreamer.layers.functional import FunctionalLayer
from keras_dreamer.layers.inputs import concat_inputs
from keras_dreamer.layers.mlp import MLP
from keras_dreamer.spaces import Leaf
from keras_dreamer.symlog import symlog
from keras_dreamer.tensor import Shape
from keras_dreamer.tensor import Tensor


@keras.saving.register_keras_serializable(package="keras_dreamer")
class Encoder(FunctionalLayer):
    """Turns a dict of observations into one embedding.

    Numbers are squashed by symlog, integers one-hot encoded, the keys
    concatenated in alphabetical order and passed through an MLP. A key that
    is not available in a sample (-inf, or -1 for integers) counts as zeros.

    Source: DreamerV3 (https://arxiv.org/abs/2301.04104v2), p. 18; item 2.9.

    Args:
        leaves: dict of `keras_dreamer.spaces.Leaf`, one for each key.
        layers: int. Number of hidden layers.
        units: int. Width of each.
        seed: int or `None`. Seed of the kernels' initial values.

    Call arguments:
        observation: dict of `(..., *shape)` tensors, float32 or int32.

    Returns:
        `(..., units)` tensor, the tokens.

    Example:

    >>> space = gymnasium.spaces.Box(-1, 1, (3,))
    >>> leaves = keras_dreamer.spaces.leaves(space, "observation")
    >>> encoder = keras_dreamer.layers.Encoder(leaves, layers=1, units=8)
    >>> tokens = encoder({"observation": keras.ops.ones((2, 3))})
    >>> tuple(tokens.shape)
    (2, 8)
    """

    def __init__(
        self,
        leaves: Mapping[str, Leaf],
        layers: int = 3,
        units: int = 256,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        # Casting would round the observations before they are squashed.
        super().__init__(autocast=False, **kwargs)
        self.leaves = dict(leaves)
        self.mlp = MLP(
            layers,
            units,
            seed,
            "mlp{}",
            "mlp{}norm",
            dtype=self.dtype_policy,
        )

    def named_layers(self) -> dict[str, Any]:
        return self.mlp.named_layers()

    def build(self, input_shape: Mapping[str, Shape] | None = None) -> None:
        width = sum(leaf.width for leaf in self.leaves.values())
        self.mlp.build((None, width))

    def apply(
        self, tensors: dict[str, Any], observation: Mapping[str, Tensor]
    ) -> Tensor:
        features = concat_inputs(
            self.leaves, observation, self.compute_dtype, symlog
        )
        return self.mlp.apply(tensors, features)

    def compute_output_shape(self, input_shape: Mapping[str, Shape]) -> Shape:
        key, leaf = next(iter(self.leaves.items()))
        batch = input_shape[key]
        batch = batch[: len(batch) - len(leaf.shape)]
        return (*batch, self.mlp.units)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config.pop("autocast", None)
        return {
            **config,
            "leaves": leaves_to_config(self.leaves),
            "layers": self.mlp.layers,
            "units": self.mlp.units,
            "seed": self.mlp.seed,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Encoder":
        leaves = leaves_from_config(config["leaves"])
        return cls(**{**config, "leaves": leaves})


def leaves_to_config(leaves):
    """Returns the leaves as a dict that JSON can hold."""
    return {key: dataclasses.asdict(leaf) for key, leaf in leaves.items()}


def leaves_from_config(config):
    """Inverse of `leaves_to_config`."""
    tuples = ("shape", "sizes")
    return {
        key: Leaf(**{**leaf, **{name: tuple(leaf[name]) for name in tuples}})
        for key, leaf in config.items()
    }
