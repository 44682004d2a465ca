"""Fresh environments in the place of broken ones."""

import contextlib
import dataclasses
import traceback
import warnings

import gymnasium
import numpy as np

RESTARTED = "keras_dreamer_restarted"  # Key of the info of such a step.
LIMIT = 5  # Restarts in a row, without a completed step in between.


class Restarts:
    """Counts the restarts of one environment, warns of each, ends loops.

    Args:
        constructor: dataclass with `index`, `seed` and `__call__`, which
            makes the environment.
    """

    def __init__(self, constructor):
        self.constructor = constructor
        self.seed = constructor.seed
        self.total = 0
        self._in_a_row = 0

    def seeded(self, seed):
        """Remembers a seed given to `reset`, from which new ones follow."""
        if seed is not None:
            self.seed = seed

    def completed(self):
        """Says that a step was completed."""
        self._in_a_row = 0

    def successor(self, reason):
        """Returns the constructor of a fresh environment, with a new seed.

        Args:
            reason: string. What happened to the environment.
        """
        if self._in_a_row == LIMIT:
            raise RuntimeError(
                "An environment that is restarted must complete a step. "
                f"Received: {LIMIT} restarts of environment "
                f"{self.constructor.index} in a row without one. Correct the "
                f"environment. The last time: {reason}"
            )
        self._in_a_row += 1
        self.total += 1
        warnings.warn(
            f"Environment {self.constructor.index} is replaced by a fresh one "
            f"(restart {self.total}); its episode is cut there. Reason: "
            f"{reason}",
            stacklevel=2,
        )
        sequence = np.random.SeedSequence([self.seed, self.total])
        seed = int(sequence.generate_state(1)[0])
        return dataclasses.replace(self.constructor, seed=seed)


class Restarting(gymnasium.Wrapper):
    """Replaces an environment that raises by a fresh one.

    The step that raised becomes the reset of the fresh one: its info has the
    key `RESTARTED`, from which `Transitions` knows that the row is the first
    of an episode and the row before it the last one.

    Args:
        constructor: as for `Restarts`.
    """

    def __init__(self, constructor):
        super().__init__(constructor())
        self._restarts = Restarts(constructor)

    def reset(self, *, seed=None, options=None):
        self._restarts.seeded(seed)
        try:
            return self.env.reset(seed=seed, options=options)
        except Exception as error:
            return self._restart(error)

    def step(self, action):
        try:
            result = self.env.step(action)
        except Exception as error:
            return as_step(*self._restart(error))
        self._restarts.completed()
        return result

    def _restart(self, error):
        while True:
            constructor = self._restarts.successor(describe(error))
            with contextlib.suppress(Exception):
                self.env.close()
            try:
                self.env = constructor()
                observation, info = self.env.reset(seed=constructor.seed)
                return observation, {**info, RESTARTED: True}
            except Exception as another:
                error = another


def as_step(observation, info):
    """Returns what `reset` gave in the form of a step."""
    return observation, 0.0, False, False, info


def describe(error):
    """Returns an exception with its traceback, as text."""
    lines = traceback.format_exception(error)
    return f"it raised {type(error).__name__}: {error}\n\n{''.join(lines)}"
