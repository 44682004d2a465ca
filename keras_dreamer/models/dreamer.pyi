# Types of the module, which would make it longer than a module shall be.
# tests/test_typing.py holds them to its signatures.
from collections.abc import Mapping
from typing import Any

import gymnasium
import keras
import numpy as np

from keras_dreamer.config import Config
from keras_dreamer.models.terms import LossTerms

class Dreamer(keras.Model):
    config: Config
    observation_space: gymnasium.Space
    action_space: gymnasium.Space
    seed: int

    def __init__(
        self,
        observation_space: gymnasium.Space,
        action_space: gymnasium.Space,
        config: Config | Mapping[str, Any] | None = None,
        seed: int = 0,
        **kwargs: Any,
    ) -> None: ...
    def loss_terms(
        self,
        batch: dict[str, Any],
        noise: dict[str, Any],
        training: bool = True,
    ) -> LossTerms: ...
    def update_terms(self, batch: dict[str, Any]) -> LossTerms: ...
    def track_update(
        self, update: LossTerms, finite: Any, norms: dict[str, Any]
    ) -> dict[str, Any]: ...
    @property
    def metrics(self) -> list[Any]: ...
    def sample_noise(
        self, batch_size: int, batch_length: int
    ) -> dict[str, Any]: ...
    def mode_noise(
        self, batch_size: int, batch_length: int, normal: float = 0.0
    ) -> dict[str, Any]: ...
    def compile(
        self,
        optimizer: Any = None,
        jit_compile: bool | str = "auto",
        **kwargs: Any,
    ) -> None: ...
    def fit(
        self,
        x: Any = None,
        callbacks: Any = None,
        verbose: int | str = "auto",
        **kwargs: Any,
    ) -> keras.callbacks.History: ...
    def update_slow_critic(self, rate: float) -> None: ...
    def act(
        self,
        observation: Any,
        state: dict[str, Any] | None = None,
        is_first: np.ndarray | None = None,
        deterministic: bool = False,
    ) -> tuple[Any, dict[str, Any]]: ...
    def official_weights(self) -> dict[str, np.ndarray]: ...
    def load_official_weights(self, params: Mapping[str, Any]) -> None: ...
