"""A vector of environments that run in processes of their own."""

import time

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from gymnasium.vector.utils import concatenate
from gymnasium.vector.utils import create_empty_array
from gymnasium.vector.utils import iterate

from keras_dreamer.envs.restarts import RESTARTED
from keras_dreamer.envs.restarts import Restarts
from keras_dreamer.envs.restarts import as_step
from keras_dreamer.envs.worker import Worker

_GRACE = 5.0  # Seconds that workers get to close by themselves.
_START = 60.0  # Seconds, at least, to import and construct an environment.


class Workers(gymnasium.vector.VectorEnv):
    """Steps environments in one process each, in next-step autoreset mode.

    Workers raise, die and hang. Then all are ended and the error says which
    one it was and why, or the broken one is replaced, see `Restarts`.

    A `step` that Ctrl-C interrupted is completed by the next one.

    Args:
        constructors: list of dataclasses as for `Worker`.
        timeout: float. Seconds after which a worker counts as hung, `None` to
            wait forever.
        restart: bool. Whether to replace broken environments.
    """

    def __init__(self, constructors, timeout=None, restart=False):
        self.num_envs = len(constructors)
        self.timeout = timeout
        self.workers = []
        for each in constructors:
            self.workers.append(Worker(each))
        self._ended = [False] * self.num_envs
        self._restarts = None  # What never worked is not restarted.
        found = self._answers(self._start_timeout)
        if restart:
            self._restarts = [Restarts(each) for each in constructors]
        self._require_equal(found)
        self.single_observation_space, self.single_action_space = found[0][:2]
        self.render_mode, metadata = found[0][2:]
        self.metadata = {**metadata, "autoreset_mode": AutoresetMode.NEXT_STEP}
        self.observation_space = batch_space(
            self.single_observation_space, self.num_envs
        )
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def reset(self, *, seed=None, options=None):
        """Resets all environments.

        Args:
            seed: list of `num_envs` ints, or `None`.
            options: dict for the environments, or `None`.

        Returns:
            Tuple of the batched observation and the infos.
        """
        for index, worker in enumerate(self.workers):
            own = None if seed is None else seed[index]
            if self._restarts:
                self._restarts[index].seeded(own)
            if worker.pending:  # Ctrl-C has interrupted a step.
                self._forget_answer(worker)
            worker.send("reset", seed=own, options=options)
        self._ended = [False] * self.num_envs
        observations, infos = zip(*self._answers(self.timeout), strict=True)
        return self._batch(observations), self._collect(infos)

    def step(self, actions):
        """Steps all environments; those that have ended are reset."""
        actions = iterate(self.action_space, actions)
        for worker, action, ended in zip(
            self.workers, actions, self._ended, strict=True
        ):
            if ended:
                worker.send("reset")
            else:
                worker.send("step", action=action)
        answers = self._answers(self.timeout)
        steps = [as_step(*a) if len(a) == 2 else a for a in answers]
        observations, reward, terminated, truncated, infos = zip(
            *steps, strict=True
        )
        terminated, truncated = np.array(terminated), np.array(truncated)
        self._ended = terminated | truncated
        return (
            self._batch(observations),
            np.array(reward),
            terminated,
            truncated,
            self._collect(infos),
        )

    def render(self):
        """Returns a tuple of pictures, and of errors where there is none."""
        for worker in self.workers:
            worker.send("render")
        return tuple(worker.take(self.timeout) for worker in self.workers)

    def close_extras(self, **kwargs):
        """Closes the environments; workers that do not answer are ended."""
        deadline = time.monotonic() + _GRACE
        for worker in self.workers:
            worker.say_goodbye()
        for worker in self.workers:
            worker.close(deadline)

    @property
    def _start_timeout(self):
        return None if self.timeout is None else max(self.timeout, _START)

    def _answers(self, timeout):
        """Returns what the workers answer, of fresh ones where they broke."""
        start = time.monotonic()
        for worker in self.workers:
            worker.wait(timeout, start)
        answers = [worker.take(0) for worker in self.workers]
        broken = [i for i, a in enumerate(answers) if isinstance(a, Exception)]
        try:
            for index in broken:
                answers[index] = self._replace(index, answers[index])
        except Exception:
            self._end()
            raise
        if self._restarts is not None:
            for index, answer in enumerate(answers):
                if len(answer) == 5:
                    self._restarts[index].completed()
        return answers

    def _replace(self, index, error):
        """Returns the reset of a fresh environment in a new process."""
        if self._restarts is None:
            raise error
        while True:
            constructor = self._restarts[index].successor(str(error))
            self.workers[index].end()
            self.workers[index] = worker = Worker(constructor)
            error = worker.take(self._start_timeout)  # Of the construction.
            if not isinstance(error, Exception):
                worker.send("reset", seed=constructor.seed)
                error = worker.take(self.timeout)
            if not isinstance(error, Exception):
                observation, info = error
                return observation, {**info, RESTARTED: True}

    def _forget_answer(self, worker):
        # An exception stays and is dealt with.
        if not isinstance(worker.wait(self.timeout), Exception):
            worker.take(0)

    def _end(self):
        for worker in self.workers:
            worker.end()
        self.closed = True

    def _require_equal(self, found):
        for index, (*spaces, _, _) in enumerate(found):
            if spaces != [*found[0][:2]]:
                self._end()
                raise ValueError(
                    "All environments must have the same spaces. Received: "
                    f"{spaces} of environment {index}, {found[0][:2]} of "
                    "environment 0. Use one vector for each kind."
                )

    def _batch(self, observations):
        space = self.single_observation_space
        empty = create_empty_array(space, self.num_envs)
        return concatenate(space, observations, empty)

    def _collect(self, infos):
        collected = {}
        for index, info in enumerate(infos):
            collected = self._add_info(collected, info, index)
        return collected
