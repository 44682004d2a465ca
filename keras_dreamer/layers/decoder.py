"""Decoder of vector observations."""

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_dreamer.distributions import Categorical
from keras_dreamer.layers.encoder import leaves_from_config
from keras_dreamer.layers.encoder import leaves_to_config
from keras_dreamer.layers.float32_layer import Float32Layer
from keras_dreamer.layers.functional import dense
from keras_dreamer.layers.initializers import spread_seeds
from keras_dreamer.layers.inputs import available
from keras_dreamer.layers.mlp import MLP
from keras_dreamer.layers.mlp import linear
from keras_dreamer.losses.world_model import categorical_nll
from keras_dreamer.losses.world_model import symlog_mse
from keras_dreamer.spaces import Leaf
from keras_dreamer.tensor import Shape
from keras_dreamer.tensor import Tensor


@keras.saving.register_keras_serializable(package="keras_dreamer")
class Decoder(Float32Layer):
    """Predicts every key of an observation from the latent state.

    Source: DreamerV3 (https://arxiv.org/abs/2301.04104v2), p. 18; item 2.11.

    Args:
        leaves: dict of `keras_dreamer.spaces.Leaf`, one for each key.
        layers: int. Number of hidden layers.
        units: int. Width of each.
        outscale: float. Scale of the output kernels' initial values.
        seed: int or `None`. Seed of the kernels' initial values.

    Call arguments:
        features: `(..., features)` tensor. The reference concatenates the
            latents before the deterministic state here.

    Returns:
        Dict of float32 tensors: numbers in symlog space, `(..., *shape)`,
        or logits of integers, `(..., *shape, classes)`.

    Example:

    >>> space = gymnasium.spaces.Box(-1, 1, (3,))
    >>> leaves = keras_dreamer.spaces.leaves(space, "observation")
    >>> decoder = keras_dreamer.layers.Decoder(leaves, layers=1, units=8)
    >>> predictions = decoder(keras.ops.ones((2, 16)))
    >>> tuple(predictions["observation"].shape)
    (2, 3)
    """

    def __init__(
        self,
        leaves: Mapping[str, Leaf],
        layers: int = 3,
        units: int = 256,
        outscale: float = 1.0,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.leaves = dict(leaves)
        self.outscale = outscale
        self.seed = seed
        first, *rest = spread_seeds(seed, 1 + len(self.leaves))
        self.mlp = MLP(layers, units, first, dtype=self.dtype_policy)
        self.outputs = {
            key: linear(leaf.width, outscale, seed, self.dtype_policy)
            for (key, leaf), seed in zip(self.leaves.items(), rest, strict=True)
        }

    def named_layers(self) -> dict[str, Any]:
        heads = {
            key: {_output_name(leaf): self.outputs[key]}
            for key, leaf in self.leaves.items()
        }
        return {"mlp": self.mlp, "vec": heads}

    def build(self, input_shape: Shape) -> None:
        self.mlp.build(input_shape)
        for head in self.outputs.values():
            head.build((*input_shape[:-1], self.mlp.units))

    def apply(
        self, tensors: dict[str, Any], features: Tensor
    ) -> dict[str, Tensor]:
        x = self.mlp.apply(tensors["mlp"], features)
        return {
            key: _decode(leaf, tensors["vec"][key][_output_name(leaf)], x)
            for key, leaf in self.leaves.items()
        }

    def losses_of(
        self,
        predictions: Mapping[str, Tensor],
        observation: Mapping[str, Tensor],
    ) -> dict[str, Tensor]:
        """Returns the reconstruction loss of every key.

        Args:
            predictions: dict, what `call` returned.
            observation: dict of `(..., *shape)` tensors. A key that is not
                available in a sample costs nothing there.

        Returns:
            Dict of `(...)` float32 tensors.
        """
        losses = {}
        for key, leaf in self.leaves.items():
            target = observation[key]
            present = available(leaf, target)
            if leaf.discrete:
                spread = categorical_of(leaf, predictions[key])
                losses[key] = categorical_nll(spread, target, present)
            else:
                losses[key] = symlog_mse(
                    predictions[key], target, len(leaf.shape), present
                )
        return losses

    def compute_output_shape(self, input_shape: Shape) -> dict[str, Shape]:
        return {
            key: (*input_shape[:-1], *_output_shape(leaf))
            for key, leaf in self.leaves.items()
        }

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "leaves": leaves_to_config(self.leaves),
            "layers": self.mlp.layers,
            "units": self.mlp.units,
            "outscale": self.outscale,
            "seed": self.seed,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Decoder":
        leaves = leaves_from_config(config["leaves"])
        return cls(**{**config, "leaves": leaves})


def categorical_of(leaf, logits):
    """Returns the `Categorical` of a discrete leaf's logits."""
    sizes = np.reshape(leaf.sizes, leaf.shape)
    return Categorical(logits, event_ndim=len(leaf.shape), sizes=sizes)


def _output_name(leaf):
    return "logits" if leaf.discrete else "pred"


def _output_shape(leaf):
    return leaf.shape + ((leaf.classes,) if leaf.discrete else ())


def _decode(leaf, tensors, x):
    prediction = ops.cast(dense(tensors, x), "float32")
    shape = (*ops.shape(x)[:-1], *_output_shape(leaf))
    return ops.reshape(prediction, shape)
