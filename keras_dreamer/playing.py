"""Plays whole episodes, apart from training."""

import numpy as np

from keras_dreamer import spaces
from keras_dreamer.envs.transitions import Transitions
from keras_dreamer.models.acting import keep_inactive
from keras_dreamer.models.acting import next_state
from keras_dreamer.scores import Scores


def play(model, envs, episodes, deterministic, rng, watch=lambda rows: False):
    """Plays episodes; the model's own noise stays as it is.

    Every environment plays the same number of episodes, so that short
    episodes are not overrepresented.

    Args:
        model: `Dreamer`.
        envs: `gymnasium.vector.VectorEnv`.
        episodes: int. At least so many; the next multiple of the number of
            environments is played.
        deterministic: bool. Whether to take the modes.
        rng: `numpy.random.Generator` of the noise.
        watch: function that gets all `Rows` as they come and tells whether to
            stop there.

    Returns:
        `Scores`, of the episodes that ended if `watch` stopped them.
    """
    quota = -(-episodes // envs.num_envs)
    transitions = Transitions(envs)
    observations = spaces.Converter(
        envs.single_observation_space, "observation"
    )
    actions = spaces.Converter(envs.single_action_space, "action")
    waiting = transitions.reset()
    running, steps = np.zeros(envs.num_envs), np.zeros(envs.num_envs, int)
    ended = [[] for _ in range(envs.num_envs)]
    state = None
    while min(map(len, ended)) < quota:
        if not waiting:
            waiting = transitions.step(actions.from_model(state["action"]))
        rows = waiting.pop(0)
        if watch(rows):
            break
        state = _act(model, observations, rows, state, deterministic, rng)
        # An episode before may have broken off.
        begins = rows.active & rows.is_first
        running[begins] = steps[begins] = 0
        running += np.where(rows.active, rows.reward, 0.0)
        steps += rows.active & ~rows.is_first
        for env in np.flatnonzero(rows.active & rows.is_last):
            ended[env].append((running[env], steps[env]))
    counted = [episode for own in ended for episode in own[:quota]]
    returns, lengths = np.reshape(counted, (-1, 2)).T
    return Scores(returns, lengths.astype(int))


def check_episodes(episodes):
    """Refuses numbers of episodes that say nothing."""
    if episodes < 1:
        raise ValueError(
            "`episodes` must be at least 1. Received: "
            f"episodes={episodes}. Choose how many to play."
        )


def _act(model, observations, rows, state, deterministic, rng):
    observation = observations.to_model(rows.observation)
    new = next_state(
        model, observation, state, rows.is_first, deterministic, rng
    )
    return keep_inactive(state, new, rows.active)
