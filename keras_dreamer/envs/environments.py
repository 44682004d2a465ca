"""A vector of environments with a seed for each."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np


class Environments(gymnasium.vector.VectorWrapper):
    """N environments that are stepped together, as `make` returns them.

    The first `reset` without a seed gives every environment its own seed;
    later ones go on with the random numbers of the environments.

    Attributes:
        num_envs: int. Number of environments.
        single_observation_space: gymnasium space of one environment.
        single_action_space: gymnasium space of one environment.
        action_repeat: int. Simulator steps per action.
        seeds: list of ints. Seed of each environment.

    Args:
        env: `gymnasium.vector.VectorEnv`.
        seeds: list of `num_envs` ints.
        action_repeat: int. Number of simulator steps per action.
    """

    def __init__(
        self,
        env: gymnasium.vector.VectorEnv,
        seeds: Sequence[int],
        action_repeat: int = 1,
    ) -> None:
        super().__init__(env)
        self.seeds = list(seeds)
        self.action_repeat = action_repeat
        self._seeded = False

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Resets all environments.

        Args:
            seed: int, list of `num_envs` ints, or None. An int gives the
                seeds that `make(..., seed=seed)` gives.
            options: dict for the environments.

        Returns:
            Tuple of the batched observation and the infos.
        """
        if seed is None:
            seed = None if self._seeded else self.seeds
        elif np.ndim(seed) == 0:
            seed = spread(seed, self.num_envs)
        self._seeded = True
        return self.env.reset(seed=seed, options=options)


def spread(seed, count):
    """Draws unrelated seeds from one.

    Args:
        seed: int, or None for seeds that differ from run to run.
        count: int. Number of seeds.

    Returns:
        List of ints in `[0, 2**32)`. The first ones do not depend on `count`.
    """
    state = np.random.SeedSequence(seed).generate_state(count)
    return [int(value) for value in state]
