"""A trained policy in other people's loops."""

import os
from typing import Any

import keras
import numpy as np

from keras_dreamer.models.acting import next_state
from keras_dreamer.models.dreamer import Dreamer


class Policy:
    """Acts like a policy of stable-baselines3.

    `predict` has that library's signature, so its `evaluate_policy` and other
    loops written for it run unchanged. No environment, replay or optimizer is
    needed.

    Args:
        model: `Dreamer`.

    Attributes:
        observation_space: gymnasium space of one environment.
        action_space: gymnasium space of one environment.

    Example:

    >>> space = gymnasium.spaces.Box(-1, 1, (3,))
    >>> config = keras_dreamer.Config(size="small")
    >>> model = keras_dreamer.Dreamer(space, space, config)
    >>> policy = keras_dreamer.Policy(model)
    >>> action, state = policy.predict([0.0, 0.5, 1.0])
    >>> action, state = policy.predict([0.5, 0.5, 1.0], state)
    >>> action.shape
    (3,)
    """

    def __init__(self, model: Dreamer) -> None:
        self.model = model
        self.observation_space = model.observation_space
        self.action_space = model.action_space

    @classmethod
    def load(cls, file: str | os.PathLike[str]) -> "Policy":
        """Loads the policy of a saved agent.

        Args:
            file: path of a `.keras` file that `Dreamer.save` wrote.

        Returns:
            `Policy`.
        """
        model = keras.saving.load_model(file, compile=False)
        if not isinstance(model, Dreamer):
            raise ValueError(
                "`file` must hold a `Dreamer`. Received a "
                f"{type(model).__name__} from file={str(file)!r}. Save the "
                "agent with model.save('agent.keras')."
            )
        return cls(model)

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
    ) -> tuple[Any, dict[str, Any]]:
        """Chooses the actions for one observation or for a batch of them.

        Args:
            observation: nest of arrays of the observation space, with or
                without a leading axis for N environments.
            state: `None` before the first step, then what this method
                returned.
            episode_start: `(N,)` bool array: which environments just started
                an episode, or `None` if none did. A `state` of `None` starts
                all.
            deterministic: bool. Whether to take the modes of the latents and
                of the policy. The published agent always samples.

        Returns:
            Pair of the actions, with a leading axis if the observation has
            one, and the state for the next call.
        """
        observation, batched = self._to_model(observation)
        count = len(next(iter(observation.values())))
        if state is None:
            episode_start = np.ones(count, bool)
        elif episode_start is None:
            episode_start = np.zeros(count, bool)
        state = next_state(
            self.model,
            observation,
            state,
            np.reshape(episode_start, count).astype(bool),
            deterministic,
        )
        action = state["action"]
        if not batched:
            action = {key: value[0] for key, value in action.items()}
        return self.model.actions.from_model(action), state

    def _to_model(self, observation):
        """Returns the flat batch, and whether there was a leading axis."""
        try:
            single = self.model.observations.to_model(observation, lead=0)
        except ValueError:
            return self.model.observations.to_model(observation), True
        return {key: value[None] for key, value in single.items()}, False
