"""Supervision of environments that run in worker processes."""

import contextlib
import multiprocessing
import multiprocessing.connection
import time
import traceback

import gymnasium
from gymnasium.vector.utils import batch_space
from gymnasium.vector.utils import create_empty_array
from gymnasium.vector.utils import iterate

_ERROR = "worker_error"  # Key of the info that carries an error home.
_GRACE = 5.0  # Seconds that workers get to close by themselves.


class Contained(gymnasium.Wrapper):
    """Sends an environment's error to the main process instead of raising it.

    Gymnasium rebuilds exceptions in the main process, which hangs or hides
    the cause when an exception cannot be pickled or rebuilt. A text can.

    Args:
        env: gymnasium environment.
        index: int. Number of the environment in its vector.
    """

    def __init__(self, env, index):
        super().__init__(env)
        self.index = index

    def reset(self, *, seed=None, options=None):
        try:
            return self.env.reset(seed=seed, options=options)
        except Exception as error:
            return self._blank(), self._report(error)

    def step(self, action):
        try:
            return self.env.step(action)
        except Exception as error:
            return self._blank(), 0.0, False, False, self._report(error)

    def render(self):
        try:
            return self.env.render()
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    def _blank(self):
        space = self.env.observation_space
        [observation] = iterate(
            batch_space(space, 1), create_empty_array(space, 1)
        )
        return observation

    def _report(self, error):
        text = (
            f"{error}\n\nEnvironment {self.index} raised "
            f"{type(error).__name__} in its process:\n"
            f"{traceback.format_exc()}"
        )
        return {_ERROR: (isinstance(error, ValueError), text)}


class Supervised(gymnasium.vector.VectorWrapper):
    """Ends all workers when one of them raises, dies or hangs, and says so.

    Args:
        env: `gymnasium.vector.AsyncVectorEnv` of `Contained` environments.
        timeout: float. Seconds after which a worker counts as hung, None to
            wait forever.
    """

    def __init__(self, env, timeout):
        super().__init__(env)
        self.timeout = timeout

    def reset(self, *, seed=None, options=None):
        with self._supervision():
            self.env.reset_async(seed=seed, options=options)
            observation, infos = self.env.reset_wait(self.timeout)
        self._raise_reported(infos)
        return observation, infos

    def step(self, actions):
        with self._supervision():
            self.env.step_async(actions)
            result = self.env.step_wait(self.timeout)
        self._raise_reported(result[-1])
        return result

    def close(self, **kwargs):
        """Closes the environments; workers that do not answer are ended."""
        if self.closed:
            return
        deadline = time.monotonic() + _GRACE
        for pipe in self._pipes():
            with contextlib.suppress(OSError):
                pipe.send(("close", None))
        for process in self.env.processes:
            process.join(max(0.0, deadline - time.monotonic()))
        self._end_workers()

    @contextlib.contextmanager
    def _supervision(self):
        try:
            yield
        except multiprocessing.TimeoutError:
            hung = self._silent()
            self._end_workers()
            raise TimeoutError(
                "Environments must answer within the `timeout`. Received: "
                f"nothing from environments {hung} in {self.timeout} seconds. "
                "Look for an endless loop there, or raise `timeout`."
            ) from None
        except (EOFError, OSError) as error:
            dead = self._dead()
            self._end_workers()
            raise RuntimeError(
                "The process of every environment must stay alive. Received: "
                f"dead environments with exit codes {dead}. A negative code "
                "is the signal that ended it (-9: often out of memory)."
            ) from error

    def _pipes(self):
        # Gymnasium puts None in the place of a pipe that it has given up.
        return [pipe for pipe in self.env.parent_pipes if pipe is not None]

    def _silent(self):
        pipes = enumerate(self._pipes())
        return [index for index, pipe in pipes if not pipe.poll()]

    def _dead(self):
        processes = self.env.processes
        sentinels = [process.sentinel for process in processes]
        multiprocessing.connection.wait(sentinels, timeout=1.0)
        codes = {i: process.exitcode for i, process in enumerate(processes)}
        return {i: code for i, code in codes.items() if code is not None}

    def _raise_reported(self, infos):
        if _ERROR not in infos:
            return
        self._end_workers()
        [(is_value_error, text), *_] = filter(None, infos[_ERROR])
        raise ValueError(text) if is_value_error else RuntimeError(text)

    def _end_workers(self):
        for process in self.env.processes:
            process.terminate()
        for process in self.env.processes:
            process.join(1.0)
            if process.is_alive():
                process.kill()
                process.join()
        for pipe in self._pipes():
            pipe.close()
        self.env.closed = True
