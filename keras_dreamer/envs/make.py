"""`make`: one function for every kind of environment."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from gymnasium.vector import AutoresetMode
from gymnasium.vector import SyncVectorEnv

from keras_dreamer.envs.action_repeat import ActionRepeat
from keras_dreamer.envs.checked import Checked
from keras_dreamer.envs.environments import Environments
from keras_dreamer.envs.environments import spread
from keras_dreamer.envs.process import Workers
from keras_dreamer.envs.restarts import Restarting
from keras_dreamer.envs.sources import builder
from keras_dreamer.envs.sources import is_instance
from keras_dreamer.envs.sources import require_factory


def make(
    env: Any,
    num_envs: int = 1,
    action_repeat: int = 1,
    seed: int | None = 0,
    mode: str = "sync",
    timeout: float | None = 600.0,
    on_env_error: str = "raise",
    **kwargs: Any,
) -> Environments:
    """Makes a vector of environments, in next-step autoreset mode.

    Args:
        env: what to make:
            "gym:<id>": a registered gymnasium environment.
            "dmc:<domain>_<task>": a task of the DeepMind Control Suite, such
            as "dmc:ball_in_cup_catch". Sets `MUJOCO_GL=disable` when it is not
            set and dm_control is not imported yet, so that no OpenGL is needed.
            A class of `gymnasium.Env` or `dm_env.Environment`, or a function
            that returns an environment. A single instance serves for
            `num_envs=1` in this process.
        num_envs: int. Number of environments.
        action_repeat: int. Simulator steps per action, see `ActionRepeat`.
        seed: int, or None. Every environment gets its own seed out of it.
        mode: str. "sync" steps the environments one after the other in this
            process, "process" runs each in a process of its own. The script
            then needs the usual `if __name__ == "__main__":`.
        timeout: float. Seconds after which a process counts as hung, None to
            wait forever. To start it has at least a minute.
        on_env_error: str. "raise" ends everything when an environment raises,
            or when its process dies or hangs. "restart" warns, puts a fresh
            environment with a new seed in its place and cuts the episode
            there; five times in a row without a completed step raise. Without
            processes, only raising is found.
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
    _require_choice(num_envs, mode, on_env_error)
    source = builder(env, kwargs.get("render_mode"))
    build = functools.partial(source, **kwargs)
    if is_instance(env):
        require_factory(num_envs, mode, on_env_error)
    seeds = spread(seed, num_envs)
    restart = on_env_error == "restart"
    constructors = [
        _Constructor(build, index, seeds[index], action_repeat)
        for index in range(num_envs)
    ]
    if mode == "process":
        vector = Workers(constructors, timeout, restart)
    else:
        if restart:
            constructors = [
                functools.partial(Restarting, each) for each in constructors
            ]
        vector = SyncVectorEnv(
            constructors, autoreset_mode=AutoresetMode.NEXT_STEP
        )
    return Environments(vector, seeds, action_repeat)


@dataclasses.dataclass(frozen=True)
class _Constructor:
    """Makes one wrapped environment, here or in a worker process."""

    build: Callable
    index: int
    seed: int
    action_repeat: int

    def __call__(self):
        env = Checked(self.build(seed=self.seed), self.index)
        return ActionRepeat(env, self.action_repeat)


def _require_choice(num_envs, mode, on_env_error):
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
    if on_env_error not in ("raise", "restart"):
        raise ValueError(
            "`on_env_error` must be 'raise' or 'restart'. Received: "
            f"on_env_error={on_env_error!r}. Use 'raise' to see every error."
        )
