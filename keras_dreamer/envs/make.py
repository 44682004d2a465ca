"""`make`: one function for every kind of environment."""

import dataclasses
import functools
import multiprocessing
import os
import random
import signal
from collections.abc import Callable

import gymnasium
import numpy as np
from gymnasium.vector import AsyncVectorEnv
from gymnasium.vector import AutoresetMode
from gymnasium.vector import SyncVectorEnv

from keras_dreamer.envs.action_repeat import ActionRepeat
from keras_dreamer.envs.checked import Checked
from keras_dreamer.envs.dm_control import load_suite_task
from keras_dreamer.envs.dm_control import suite_task
from keras_dreamer.envs.environments import Environments
from keras_dreamer.envs.environments import spread
from keras_dreamer.envs.process import Contained
from keras_dreamer.envs.process import Supervised


def make(
    env,
    num_envs=1,
    action_repeat=1,
    seed=0,
    mode="sync",
    timeout=600.0,
    **kwargs,
):
    """Makes a vector of environments, in next-step autoreset mode.

    Args:
        env: what to make:
            "gym:<id>": a registered gymnasium environment.
            "dmc:<domain>_<task>": a task of the DeepMind Control Suite, such
            as "dmc:ball_in_cup_catch". Sets `MUJOCO_GL=disable` when it is not
            set and dm_control is not imported yet, so that no OpenGL is needed.
            A class of `gymnasium.Env`, or a function that returns one.
        num_envs: int. Number of environments.
        action_repeat: int. Simulator steps per action, see `ActionRepeat`.
        seed: int, or None. Every environment gets its own seed out of it.
        mode: str. "sync" steps the environments one after the other in this
            process, "process" runs each in a process of its own. The script
            then needs the usual `if __name__ == "__main__":`.
        timeout: float. Seconds after which a process counts as hung, None to
            wait forever.
        **kwargs: Arguments of the environment's constructor, such as
            `render_mode="rgb_array"` for videos. dm_control then needs
            OpenGL; it is looked for when MUJOCO_GL does not name it.

    Returns:
        `Environments`.

    Example:

    >>> envs = keras_dreamer.envs.make("gym:Pendulum-v1", num_envs=4)
    >>> observation, infos = envs.reset()
    >>> observation.shape
    (4, 3)
    """
    _require_choice(num_envs, mode)
    build = functools.partial(
        _builder(env, kwargs.get("render_mode")), **kwargs
    )
    seeds = spread(seed, num_envs)
    worker = mode == "process"
    env_fns = [
        _Constructor(build, index, seeds[index], action_repeat, worker)
        for index in range(num_envs)
    ]
    if worker:
        vector = Supervised(_start_processes(env_fns), timeout)
    else:
        vector = SyncVectorEnv(env_fns, autoreset_mode=AutoresetMode.NEXT_STEP)
    return Environments(vector, seeds, action_repeat)


@dataclasses.dataclass(frozen=True)
class _Constructor:
    """Makes one wrapped environment, here or in a worker process."""

    build: Callable
    index: int
    seed: int
    action_repeat: int
    worker: bool
    parent: int = dataclasses.field(default_factory=os.getpid)

    def __call__(self):
        if os.getpid() != self.parent:
            _prepare_process(self.seed)
        env = self.build(seed=self.seed)
        if not isinstance(env, gymnasium.Env):
            raise ValueError(
                "The function passed as `env` must return a `gymnasium.Env`. "
                f"Received: {type(env).__name__}. Let the class derive from "
                "`gymnasium.Env`, or wrap a dm_env in `FromDmControl`."
            )
        env = ActionRepeat(Checked(env, self.index), self.action_repeat)
        return Contained(env, self.index) if self.worker else env


def _prepare_process(seed):
    # Ctrl-C reaches the whole group; only the main process shall act on it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Environments may draw from the global generators, equal in all forks.
    random.seed(seed)
    np.random.seed(seed)


def _require_choice(num_envs, mode):
    if int(num_envs) != num_envs or num_envs < 1:
        raise ValueError(
            "`num_envs` must be an integer of 1 or more. Received: "
            f"num_envs={num_envs}. Use 1 for a single environment."
        )
    if mode not in ("sync", "process"):
        raise ValueError(
            "`mode` must be 'sync' or 'process'. Received: "
            f"mode={mode!r}. Use 'sync' unless one step takes milliseconds."
        )


def _builder(env, render_mode=None):
    """Returns a function `(seed, **kwargs) -> gymnasium.Env`."""
    if isinstance(env, str):
        prefix, _, name = env.partition(":")
        if name and prefix == "gym":
            # The spec travels to processes that have not registered the name.
            return functools.partial(
                _build_gym, gymnasium.registry.get(name, name)
            )
        if name and prefix == "dmc":
            return functools.partial(
                load_suite_task, *suite_task(name, render_mode)
            )
    elif callable(env):
        return functools.partial(_build_callable, env)
    raise ValueError(
        "`env` must be 'gym:<id>', 'dmc:<domain>_<task>', a class of "
        "`gymnasium.Env`, or a function that returns an environment. Received: "
        f"env={env!r}. To use an instance, pass `lambda: MyEnv(...)`, so that "
        "every environment is one of its own."
    )


def _build_gym(spec, seed, **kwargs):
    return gymnasium.make(spec, **kwargs)


def _build_callable(function, seed, **kwargs):
    return function(**kwargs)


def _start_processes(env_fns):
    """Starts one process per environment.

    Never by fork: the threads of JAX and TensorFlow would be left behind in
    an undefined state. A fork server imports this package once for all.
    """
    context = "spawn"
    if "forkserver" in multiprocessing.get_all_start_methods():
        context = "forkserver"
        multiprocessing.set_forkserver_preload(["__main__", __name__])
    try:
        return AsyncVectorEnv(
            env_fns, context=context, autoreset_mode=AutoresetMode.NEXT_STEP
        )
    except (EOFError, OSError) as error:
        raise RuntimeError(
            "Every environment process must start. Received: one that ended "
            "at its start, with its own message above. Guard the script with "
            '`if __name__ == "__main__":`, or use mode="sync".'
        ) from error
