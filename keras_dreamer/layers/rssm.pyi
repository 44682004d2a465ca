# Types of the module, which would make it longer than a module shall be.
# tests/test_typing.py holds them to its signatures.
from collections.abc import Callable
from typing import Any

import keras

from keras_dreamer.distributions import Categorical
from keras_dreamer.layers.block_gru import BlockGRU
from keras_dreamer.layers.functional import FunctionalLayer
from keras_dreamer.layers.mlp import MLP
from keras_dreamer.tensor import Shape
from keras_dreamer.tensor import Tensor

class RSSM(FunctionalLayer):
    deter: int
    hidden: int
    stoch: int
    classes: int
    blocks: int
    imglayers: int
    obslayers: int
    unimix: float
    seed: int | None
    gru: BlockGRU
    prior_mlp: MLP
    prior_logits: keras.layers.Dense
    posterior_mlp: MLP
    posterior_logits: keras.layers.Dense

    def __init__(
        self,
        deter: int = 2048,
        hidden: int = 256,
        stoch: int = 32,
        classes: int = 16,
        blocks: int = 8,
        imglayers: int = 2,
        obslayers: int = 1,
        unimix: float = 0.01,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None: ...
    def named_layers(self) -> dict[str, Any]: ...
    def build(
        self,
        tokens_shape: Shape,
        action_shape: Shape,
        is_first_shape: Shape | None = None,
    ) -> None: ...
    def call(
        self, tokens: Tensor, action: Tensor, is_first: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def apply(
        self,
        tensors: dict[str, Any],
        tokens: Tensor,
        action: Tensor,
        is_first: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def initial(self, batch_size: int) -> tuple[Tensor, Tensor]: ...
    def latents(self, logits: Tensor) -> Categorical: ...
    def prior(self, tensors: dict[str, Any], deter: Tensor) -> Tensor: ...
    def observe(
        self,
        tensors: dict[str, Any],
        carry: tuple[Tensor, Tensor],
        tokens: Tensor,
        action: Tensor,
        is_first: Tensor,
        noise: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor]: ...
    def observe_step(
        self,
        tensors: dict[str, Any],
        carry: tuple[Tensor, Tensor],
        tokens: Tensor,
        action: Tensor,
        is_first: Tensor,
        noise: Tensor | None,
    ) -> tuple[Tensor, Tensor]: ...
    def imagine(
        self,
        tensors: dict[str, Any],
        carry: tuple[Tensor, Tensor],
        readouts: dict[str, Any],
        policy: Callable[[dict[str, Tensor], Any], tuple[Tensor, Any]],
        noise: tuple[Any, Tensor | None],
        length: int,
    ) -> tuple[Tensor, Tensor, Any, dict[str, Tensor]]: ...
    def compute_output_shape(
        self,
        tokens_shape: Shape,
        action_shape: Shape,
        is_first_shape: Shape,
    ) -> tuple[Shape, Shape, Shape]: ...
    def get_config(self) -> dict[str, Any]: ...
