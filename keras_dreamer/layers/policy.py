"""The actor: an MLP with one head for each key of the action space."""

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from keras_dreamer.distributions import Categorical
from keras_dreamer.distributions import Normal
from keras_dreamer.layers.bounded_normal import BoundedNormal
from keras_dreamer.layers.categorical_head import CategoricalHead
from keras_dreamer.layers.encoder import leaves_from_config
from keras_dreamer.layers.encoder import leaves_to_config
from keras_dreamer.layers.float32_layer import Float32Layer
from keras_dreamer.layers.initializers import spread_seeds
from keras_dreamer.layers.mlp import MLP
from keras_dreamer.layers.mlp import MLPHead
from keras_dreamer.spaces import Leaf
from keras_dreamer.tensor import Shape
from keras_dreamer.tensor import Tensor


@keras.saving.register_keras_serializable(package="keras_dreamer")
class Policy(MLPHead, Float32Layer):
    """Predicts a distribution for every key of the action.

    Source: DreamerV3 (https://arxiv.org/abs/2301.04104v2), p. 18; items 3.13
    to 3.15.

    Args:
        leaves: dict of `keras_dreamer.spaces.Leaf`, one for each key.
        layers: int. Number of hidden layers.
        units: int. Width of each.
        unimix: float in `[0, 1]`. Share of the uniform in discrete actions.
        minstd: float. Smallest standard deviation of continuous actions.
        maxstd: float. Largest standard deviation of continuous actions.
        outscale: float. Scale of the output kernels' initial values.
        seed: int or `None`. Seed of the kernels' initial values.

    Call arguments:
        inputs: `(..., features)` tensor.

    Returns:
        Dict of head outputs; `distributions(outputs)` gives those to sample
        from.

    Example:

    >>> space = gymnasium.spaces.MultiDiscrete([3, 2])
    >>> leaves = keras_dreamer.spaces.leaves(space, "action")
    >>> policy = keras_dreamer.layers.Policy(leaves, layers=1, units=8)
    >>> outputs = policy(keras.ops.ones((4, 16)))
    >>> action = policy.distributions(outputs)["action"].mode()
    >>> tuple(action.shape)
    (4, 2)
    """

    def __init__(
        self,
        leaves: Mapping[str, Leaf],
        layers: int = 3,
        units: int = 256,
        unimix: float = 0.01,
        minstd: float = 0.1,
        maxstd: float = 1.0,
        outscale: float = 0.01,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.leaves = dict(leaves)
        self.unimix = unimix
        self.minstd = minstd
        self.maxstd = maxstd
        self.outscale = outscale
        self.seed = seed
        first, *rest = spread_seeds(seed, 1 + len(self.leaves))
        self.mlp = MLP(layers, units, first, dtype=self.dtype_policy)
        self.heads = {
            key: self._head(leaf, seed)
            for (key, leaf), seed in zip(self.leaves.items(), rest, strict=True)
        }

    def _head(self, leaf, seed):
        if not leaf.discrete:
            return BoundedNormal(
                leaf.shape,
                self.minstd,
                self.maxstd,
                self.outscale,
                seed,
                dtype=self.dtype_policy,
            )
        sizes = np.reshape(leaf.sizes, leaf.shape)
        return CategoricalHead(
            sizes, self.unimix, self.outscale, seed, dtype=self.dtype_policy
        )

    def named_layers(self) -> dict[str, Any]:
        return {"mlp": self.mlp, "head": dict(self.heads)}

    def build(self, input_shape: Shape) -> None:
        self.mlp.build(input_shape)
        for head in self.heads.values():
            head.build((*input_shape[:-1], self.mlp.units))

    def finish(self, tensors: dict[str, Any], x: Tensor) -> dict[str, Any]:
        x = self.mlp.finish(tensors["mlp"], x)
        return {
            key: head.apply(tensors["head"][key], x)
            for key, head in self.heads.items()
        }

    def distributions(
        self, outputs: Mapping[str, Any]
    ) -> dict[str, Normal | Categorical]:
        """Returns a dict of `Normal` and `Categorical` distributions."""
        return {
            key: head.distribution(*outputs[key])
            if isinstance(head, BoundedNormal)
            else head.distribution(outputs[key])
            for key, head in self.heads.items()
        }

    def compute_output_shape(self, input_shape: Shape) -> dict[str, Any]:
        hidden = (*input_shape[:-1], self.mlp.units)
        return {
            key: head.compute_output_shape(hidden)
            for key, head in self.heads.items()
        }

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "leaves": leaves_to_config(self.leaves),
            "layers": self.mlp.layers,
            "units": self.mlp.units,
            "unimix": self.unimix,
            "minstd": self.minstd,
            "maxstd": self.maxstd,
            "outscale": self.outscale,
            "seed": self.seed,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Policy":
        leaves = leaves_from_config(config["leaves"])
        return cls(**{**config, "leaves": leaves})
