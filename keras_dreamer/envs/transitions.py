"""One stream of rows out of vectors in any autoreset mode."""

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import iterate

from keras_dreamer.envs.restarts import RESTARTED


@dataclasses.dataclass(frozen=True)
class Rows:
    """One new row of some or all of N environments.

    Attributes:
        observation: nest of `(N, ...)` arrays, as the environments give it.
        reward: `(N,)` float32. Reward received on arriving here, 0 on resets.
        is_first: `(N,)` bool. Whether the row is a reset.
        is_last: `(N,)` bool. Whether the row ends its episode.
        is_terminal: `(N,)` bool. Whether it does so by termination.
        active: `(N,)` bool. Which environments have a new row; the entries of
            the others mean nothing.
        env_steps: `(N,)` int. Simulator steps that led here, 0 on resets.
    """

    observation: Any
    reward: np.ndarray
    is_first: np.ndarray
    is_last: np.ndarray
    is_terminal: np.ndarray
    active: np.ndarray
    env_steps: np.ndarray


class Transitions:
    """Steps a vector and returns equal rows for every autoreset mode.

    For each environment the rows are those that a replay stores: the last
    observation of an episode with its reward and `is_last`, then the reset
    observation of the next one with `is_first` and reward 0.

    In next-step mode a call returns one batch, in which an environment that
    has ended before resets and ignores its action. In the other two modes a
    second batch follows when environments end, in which only these are active.

    A step that broke, of an environment that `make` has replaced, is the reset
    of the new one. The row before it is not `is_last`, as it was stored before
    the fault; the `is_first` after it says that the episode was cut there.

    Args:
        envs: `gymnasium.vector.VectorEnv` with an `AutoresetMode` in
            `envs.metadata["autoreset_mode"]`.

    Example:

    >>> transitions = keras_dreamer.envs.Transitions(envs)
    >>> rows = transitions.reset()
    >>> rows = transitions.step(envs.action_space.sample())
    """

    def __init__(self, envs: VectorEnv) -> None:
        self.envs = envs
        self.mode = _mode(envs)
        self._ended = np.zeros(envs.num_envs, bool)

    def reset(self, seed=None):
        """Resets all environments.

        Args:
            seed: as in `envs.reset`.

        Returns:
            List of one `Rows`.
        """
        observation, _ = self.envs.reset(seed=seed)
        everyone = np.ones(self.envs.num_envs, bool)
        self._ended = ~everyone
        return [_reset_rows(observation, everyone)]

    def step(self, actions):
        """Steps all environments.

        Args:
            actions: nest of `(N, ...)` arrays, the latest action of each.

        Returns:
            List of one or two `Rows`.
        """
        observation, *signals, infos = self.envs.step(actions)
        reward, terminated, truncated = map(np.asarray, signals)
        first = self._ended | np.asarray(infos.get(RESTARTED, False), bool)
        ended = (terminated | truncated).astype(bool) & ~first
        if self.mode is AutoresetMode.NEXT_STEP:
            observations = [observation]
            self._ended = ended.copy()
        elif ended.any():
            observations = self._split(observation, infos, ended)
        else:
            observations = [observation]
        rows = Rows(
            observation=observations[0],
            reward=np.where(first, 0, reward).astype("float32"),
            is_first=first.copy(),
            is_last=ended,
            is_terminal=terminated.astype(bool) & ended,
            active=np.ones_like(ended),
            env_steps=np.where(first, 0, _env_steps(infos, len(ended))),
        )
        return [rows] + [_reset_rows(obs, ended) for obs in observations[1:]]

    def _split(self, observation, infos, ended):
        """Returns the observations before and after the resets."""
        if self.mode is AutoresetMode.SAME_STEP:
            final = _final_observations(self.envs, infos)
            rows = np.flatnonzero(ended)
            before = _replace(observation, [final[row] for row in rows], rows)
            return [before, observation]
        # The vector may reuse the memory of its observations in the reset.
        before = copy.deepcopy(observation)
        after, _ = self.envs.reset(options={"reset_mask": ended.copy()})
        return [before, after]


def _mode(envs):
    mode = envs.metadata.get("autoreset_mode")
    try:
        return AutoresetMode(mode)
    except ValueError:
        raise ValueError(
            '`envs.metadata["autoreset_mode"]` must be one of '
            f"{[str(each) for each in AutoresetMode]}. Received: "
            f"{mode!r}. Set it to what the vector does at an episode's end."
        ) from None


def _reset_rows(observation, active):
    count = len(active)
    return Rows(
        observation=observation,
        reward=np.zeros(count, "float32"),
        is_first=active.copy(),
        is_last=np.zeros(count, bool),
        is_terminal=np.zeros(count, bool),
        active=active.copy(),
        env_steps=np.zeros(count, int),
    )


def _env_steps(infos, count):
    steps = np.ones(count, int)
    for source in infos, infos.get("final_info"):
        if isinstance(source, Mapping) and "env_steps" in source:
            known = source.get("_env_steps", True)
            steps = np.where(known, source["env_steps"], steps)
    return steps


def _final_observations(envs, infos):
    """Returns the last observations, to be indexed by environment."""
    if "final_obs" not in infos:
        raise ValueError(
            "A vector in same-step autoreset mode must give the last "
            'observations in `infos["final_obs"]`. Received: '
            f"{sorted(infos)}. Use next-step mode if it cannot."
        )
    final = infos["final_obs"]
    if isinstance(final, Mapping | tuple):
        return list(iterate(envs.observation_space, final))
    return final


def _replace(batch, values, rows):
    """Copies a nest of arrays with some rows replaced."""
    if isinstance(batch, Mapping):
        return {
            key: _replace(entry, [value[key] for value in values], rows)
            for key, entry in batch.items()
        }
    if isinstance(batch, tuple):
        return tuple(
            _replace(entry, [value[index] for value in values], rows)
            for index, entry in enumerate(batch)
        )
    batch = np.array(batch)
    batch[rows] = np.stack([np.asarray(value) for value in values])
    return batch
