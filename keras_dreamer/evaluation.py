"""Returns of a policy, without training."""

from typing import TYPE_CHECKING

import numpy as np
from gymnasium.vector import VectorEnv

from keras_dreamer import spaces
from keras_dreamer.envs.transitions import Transitions
from keras_dreamer.models.acting import keep_inactive
from keras_dreamer.models.acting import next_state

if TYPE_CHECKING:
    from keras_dreamer.models.dreamer import Dreamer


def evaluate(
    model: "Dreamer",
    envs: VectorEnv,
    episodes: int = 20,
    deterministic: bool = False,
    seed: int = 0,
) -> np.ndarray:
    """Plays whole episodes and returns their returns.

    Every environment plays the same number of episodes, so that short
    episodes are not overrepresented.

    Args:
        model: `Dreamer`.
        envs: what `keras_dreamer.envs.make` returns, or any gymnasium vector
            environment. Not the one that a `Driver` is using.
        episodes: int. At least so many; the next multiple of the number of
            environments is played.
        deterministic: bool. Whether to take the modes of the latents and of
            the policy. The published agent always samples.
        seed: int. Seed of the actions' noise, which is not that of training:
            evaluating does not change a run.

    Returns:
        `(episodes,)` float array, the sums of rewards.
    """
    if episodes < 1:
        raise ValueError(
            "`episodes` must be at least 1. Received: "
            f"episodes={episodes}. Choose how many to play."
        )
    quota = -(-episodes // envs.num_envs)
    transitions = Transitions(envs)
    waiting = transitions.reset()
    running = np.zeros(envs.num_envs)
    returns = [[] for _ in range(envs.num_envs)]
    state, rng = None, np.random.default_rng(seed)
    while min(map(len, returns)) < quota:
        if not waiting:
            action = spaces.from_model(
                envs.single_action_space, state["action"], "action"
            )
            waiting = transitions.step(action)
        rows = waiting.pop(0)
        state = _act(model, envs, rows, state, deterministic, rng)
        running[rows.active & rows.is_first] = 0.0
        running += np.where(rows.active, rows.reward, 0.0)
        for env in np.flatnonzero(rows.active & rows.is_last):
            returns[env].append(running[env])
    return np.array([value for own in returns for value in own[:quota]])


def _act(model, envs, rows, state, deterministic, rng):
    observation = spaces.to_model(
        envs.single_observation_space, rows.observation, "observation"
    )
    new = next_state(
        model, observation, state, rows.is_first, deterministic, rng
    )
    return keep_inactive(state, new, rows.active)
