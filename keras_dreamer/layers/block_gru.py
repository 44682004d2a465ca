"""Block-diagonal GRU, the sequence model of the RSSM."""

from typing import Any

import keras
from keras import ops

from keras_dreamer.layers.block_dense import BlockDense
from keras_dreamer.layers.blocks import Blocks
from keras_dreamer.layers.functional import FunctionalLayer
from keras_dreamer.layers.functional import dense
from keras_dreamer.layers.functional import hidden
from keras_dreamer.layers.functional import norm_silu
from keras_dreamer.layers.initializers import spread_seeds
from keras_dreamer.layers.mlp import linear
from keras_dreamer.layers.rms_norm import RMSNorm
from keras_dreamer.tensor import Shape
from keras_dreamer.tensor import Tensor


@keras.saving.register_keras_serializable(package="keras_dreamer")
class BlockGRU(FunctionalLayer):
    """Gated recurrence whose kernels are block-diagonal.

        x = [f(deter), f(stoch), f(action / max(1, |action|))]
        h[g] = [deter[g], x] @ W[g]                  for every block g
        reset, cand, update = split(silu(rms(h)) @ V)
        deter' = update * tanh(sigmoid(reset) * cand) + (1 - update) * deter
        update = sigmoid(update - 1)

    with f a hidden layer (dense, RMS norm, SiLU). The blocks exchange
    information through f(deter) alone.

    Source: DreamerV3 (https://arxiv.org/abs/2301.04104v2), p. 18, and
    `dreamerv3/rssm.py` of danijar/dreamerv3 at e3f0224; item 2.4,
    Algorithm A.

    Args:
        deter: int. Width of the state, a multiple of `blocks`.
        hidden: int. Width of each of the three embeddings.
        blocks: int. Number of blocks.
        seed: int or `None`. Seed of the kernels' initial values.

    Call arguments:
        deter: `(..., deter)` tensor, the state.
        stoch: `(..., features)` tensor, flattened one-hot latents.
        action: `(..., actions)` tensor, encoded actions.

    Returns:
        `(..., deter)` tensor, the next state.

    Example:

    >>> gru = keras_dreamer.layers.BlockGRU(deter=16, hidden=8, blocks=4)
    >>> ones = keras.ops.ones
    >>> deter = gru(ones((3, 16)), ones((3, 6)), ones((3, 2)))
    >>> tuple(deter.shape)
    (3, 16)
    """

    def __init__(
        self,
        deter: int,
        hidden: int,
        blocks: int = 8,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.deter = deter
        self.hidden = hidden
        self.blocks = blocks
        self.seed = seed
        seeds = spread_seeds(seed, 5)
        own = {"dtype": self.dtype_policy}
        self.embeddings = [
            linear(hidden, seed=seed, **own) for seed in seeds[:3]
        ]
        self.embedding_norms = [RMSNorm(**own) for _ in range(3)]
        self.mix = BlockDense(deter, blocks, seed=seeds[3], **own)
        self.mix_norm = RMSNorm(**own)
        self.gates = BlockDense(3 * deter, blocks, seed=seeds[4], **own)

    def named_layers(self) -> dict[str, Any]:
        named = {}
        for index in range(3):
            named[f"dynin{index}"] = self.embeddings[index]
            named[f"dynin{index}norm"] = self.embedding_norms[index]
        named["dynhid0"] = self.mix
        named["dynhid0norm"] = self.mix_norm
        named["dyngru"] = self.gates
        return named

    def build(
        self, deter_shape: Shape, stoch_shape: Shape, action_shape: Shape
    ) -> None:
        shapes = (deter_shape, stoch_shape, action_shape)
        for index, shape in enumerate(shapes):
            self.embeddings[index].build(shape)
            self.embedding_norms[index].build((*shape[:-1], self.hidden))
        batch = deter_shape[:-1]
        width = self.deter + self.blocks * 3 * self.hidden
        self.mix.build((*batch, width))
        self.mix_norm.build((*batch, self.deter))
        self.gates.build((*batch, self.deter))

    def call(self, deter: Tensor, stoch: Tensor, action: Tensor) -> Tensor:
        return self.apply(self.tensors(), deter, stoch, action)

    def apply(
        self,
        tensors: dict[str, Any],
        deter: Tensor,
        stoch: Tensor,
        action: Tensor,
    ) -> Tensor:
        shape = ops.shape(deter)
        deter, stoch, action = (
            ops.reshape(x, (-1, x.shape[-1])) for x in (deter, stoch, action)
        )
        tensors = self.prepare(tensors, deter.shape[0])
        embedding = self.embed_action(tensors, action)
        return ops.reshape(self.step(tensors, deter, stoch, embedding), shape)

    def prepare(
        self, tensors: dict[str, Any], rows: int | None
    ) -> dict[str, Any]:
        """Cuts the weights of the block layers for use in a loop.

        The three embeddings enter every block, so that their share of
        `dynhid0` is one dense product, without repeating them.

        Args:
            tensors: the weights, from `tensors()`.
            rows: int. Number of rows of each step.
        """
        blocks = Blocks(self.blocks, rows)
        kernel = tensors["dynhid0"]["kernel"]
        own = self.deter // self.blocks
        shared = ops.transpose(kernel[:, own:], (1, 0, 2))
        shared = ops.reshape(shared, (3 * self.hidden, self.deter))
        return {
            **tensors,
            "blocks": blocks,
            "own": {"kernel": blocks.cut_kernel(kernel[:, :own])},
            "shared": {**tensors["dynhid0"], "kernel": shared},
            "scale": blocks.cut_vector(tensors["dynhid0norm"]["scale"]),
            "gates": {
                "kernel": blocks.cut_kernel(tensors["dyngru"]["kernel"]),
                "bias": blocks.cut_vector(tensors["dyngru"]["bias"]),
            },
        }

    def embed_action(self, tensors: dict[str, Any], action: Tensor) -> Tensor:
        """Embeds `(..., actions)` encoded actions, `(..., hidden)`."""
        limit = ops.stop_gradient(ops.maximum(1.0, ops.abs(action)))
        action = action / ops.cast(limit, action.dtype)
        return hidden(tensors["dynin2"], tensors["dynin2norm"], action)

    def step(
        self,
        tensors: dict[str, Any],
        deter: Tensor,
        stoch: Tensor,
        action_embedding: Tensor,
    ) -> Tensor:
        """Returns the next state, with what `prepare` returned."""
        projections = (
            dense(tensors["dynin0"], deter),
            dense(tensors["dynin1"], stoch),
        )
        return self.advance(tensors, deter, projections, action_embedding)

    def advance(
        self,
        tensors: dict[str, Any],
        deter: Tensor,
        projections: tuple[Tensor, Tensor],
        action_embedding: Tensor,
    ) -> Tensor:
        """Continues from `dynin0` of `deter` and `dynin1` of the latents."""
        embeddings = [
            norm_silu(tensors[f"dynin{index}norm"], projection)
            for index, projection in enumerate(projections)
        ]
        embedding = ops.concatenate([*embeddings, action_embedding], axis=-1)
        blocks = tensors["blocks"]
        deter = blocks.cut(deter)
        own = blocks.matmul(deter, tensors["own"]["kernel"])
        shared = blocks.cut(dense(tensors["shared"], embedding))
        mixed = [x + y for x, y in zip(own, shared, strict=True)]
        mixed = blocks.norm_silu(tensors["scale"], mixed)
        gates = blocks.matmul(mixed, tensors["gates"]["kernel"])
        return blocks.join(
            list(map(_gated, gates, tensors["gates"]["bias"], deter))
        )

    def compute_output_shape(
        self, deter_shape: Shape, stoch_shape: Shape, action_shape: Shape
    ) -> Shape:
        return deter_shape

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "deter": self.deter,
            "hidden": self.hidden,
            "blocks": self.blocks,
            "seed": self.seed,
        }


def _gated(gates, bias, deter):
    """Returns the next state of one block, with what it keeps of `deter`."""
    own = deter.shape[-1]
    reset, candidate, update = (
        gates[..., index * own : (index + 1) * own]
        + bias[..., index * own : (index + 1) * own]
        for index in range(3)
    )
    candidate = ops.tanh(ops.sigmoid(reset) * candidate)
    update = ops.sigmoid(update - 1)
    return update * candidate + (1 - update) * deter
