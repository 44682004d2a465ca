"""A process with one environment in it, seen from both sides."""

import contextlib
import multiprocessing
import os
import random
import signal
import threading
import time
import traceback

import numpy as np
from gymnasium.vector.utils import CloudpickleWrapper


class Worker:
    """Starts a process and talks to it.

    Errors are values here, as the caller may want to replace the worker.

    Args:
        constructor: dataclass with `index`, `seed` and `__call__`, which
            makes the environment.
    """

    def __init__(self, constructor):
        self.index = constructor.index
        context = multiprocessing.get_context(_start_method())
        self._pipe, far_end = context.Pipe()
        self.process = context.Process(
            target=_work,
            args=(far_end, CloudpickleWrapper(constructor)),
            name=f"environment {self.index}",
            daemon=True,
        )
        self.process.start()
        far_end.close()
        self.pending = True  # The first answer is that to the construction.
        self._answer = None

    def send(self, method, **arguments):
        """Has a method of the environment called.

        While an answer is pending nothing happens: Ctrl-C has interrupted the
        call before, and this one completes it.
        """
        if not self.pending:
            self.pending = True
            self._write(method, arguments)

    def wait(self, timeout, start=None):
        """Waits for the answer to what was sent.

        Args:
            timeout: float, or `None` for no limit. Seconds.
            start: float. When they began, by `time.monotonic`; `None` for now.

        Returns:
            What the method returned. An exception if it raised, or if the
            process died or did not answer.
        """
        # Kept until `take`: Ctrl-C may come while others are waited for.
        if self._answer is None:
            start = time.monotonic() if start is None else start
            self._answer = (self._receive(timeout, start),)
        return self._answer[0]

    def take(self, timeout):
        """Waits for the answer and makes way for the next one."""
        answer = self.wait(timeout)
        self.pending, self._answer = False, None
        return answer

    def say_goodbye(self):
        """Asks the process to close its environment and to end."""
        self._write("close", {})

    def close(self, deadline):
        """Ends the process, by force if it does not end by itself.

        Args:
            deadline: float. When to lose patience, by `time.monotonic`.
        """
        self.process.join(max(0.0, deadline - time.monotonic()))
        self.end()

    def end(self):
        """Ends the process."""
        self.process.terminate()
        self.process.join(1.0)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self._pipe.close()

    def _write(self, method, arguments):
        # Of a dead process, `wait` will tell.
        with contextlib.suppress(OSError):
            self._pipe.send((method, arguments))

    def _receive(self, timeout, start):
        left = timeout
        if timeout is not None:
            left = max(0.0, timeout - (time.monotonic() - start))
        try:
            if self._pipe.poll(left):
                return self._pipe.recv()
        except (EOFError, OSError):
            self.process.join(1.0)
            return RuntimeError(
                "The process of every environment must stay alive. Received: "
                f"that of environment {self.index} died with exit code "
                f"{self.process.exitcode}. A negative code is the signal that "
                "ended it (-9: often out of memory). If it died at its start, "
                'guard the script with `if __name__ == "__main__":`, or use '
                'mode="sync".'
            )
        return TimeoutError(
            "Environments must answer within the `timeout`. Received: nothing "
            f"from environment {self.index} in {timeout} seconds. Look for an "
            "endless loop there, or raise `timeout`."
        )


def _start_method():
    """Returns how processes start.

    Never by fork: the threads of JAX and TensorFlow would be left behind in
    an undefined state. A fork server imports this package once for all.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return "spawn"
    multiprocessing.set_forkserver_preload(["__main__", __name__])
    return "forkserver"


def _work(pipe, constructor):
    """Constructs the environment and calls its methods until told to end."""
    # Ctrl-C reaches the whole group; only the main process shall act on it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    constructor = constructor.fn
    # Environments may draw from the global generators, equal in all forks.
    random.seed(constructor.seed)
    np.random.seed(constructor.seed)
    env = None

    def construct():
        nonlocal env
        env = constructor()
        spaces = env.observation_space, env.action_space
        return *spaces, env.render_mode, env.metadata

    answer = _contained(constructor.index, construct)
    while True:
        _answer(pipe, constructor.index, answer)
        try:
            method, arguments = pipe.recv()
        except (EOFError, OSError):  # The main process has gone.
            break
        if method == "close":
            break
        call = getattr(env, method)
        answer = _contained(constructor.index, call, **arguments)
    _contained(constructor.index, lambda: env.close())


def _end_with_parent():
    """Ends this process with the main one, even in the middle of a step."""
    multiprocessing.parent_process().join()
    os._exit(1)


def _answer(pipe, index, answer):
    # It may hold an info that cannot be pickled.
    refusal = _contained(index, pipe.send, answer)
    if refusal is not None:
        pipe.send(refusal)


def _contained(index, function, *values, **arguments):
    """Returns what the function returns, or an exception that can travel.

    The environment's own one may be impossible to pickle or to rebuild.
    """
    try:
        return function(*values, **arguments)
    except Exception as error:
        kind = ValueError if isinstance(error, ValueError) else RuntimeError
        return kind(
            f"{error}\n\nEnvironment {index} raised {type(error).__name__} in "
            f"its process:\n{traceback.format_exc()}"
        )
