"""DeepMind Control Suite, and any other `dm_env`, as gymnasium environments."""

import difflib
import importlib
import importlib.metadata
import os
import sys
import warnings
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from keras_dreamer.envs.opengl import tolerate_missing_opengl

# MuJoCo's stand-in for infinity (mjMAXVAL): the bound of an actuator that has
# no limits.
_UNLIMITED = 1e10


class FromDmControl(gymnasium.Env):
    """Turns a `dm_env.Environment` into a `gymnasium.Env`.

    Every key of the observation becomes an entry of its own, float32 when it
    was a float, with "/" replaced by "_". Actions have the bounds and dtype
    of the action spec; a bound of 1e10, which MuJoCo reports for an actuator
    without limits, becomes infinite. An end is `terminated` when the last
    discount is 0 and `truncated` otherwise. Only `render` needs OpenGL.

    Args:
        env: `dm_env.Environment`.
        random_state: `np.random.RandomState` that the environment draws from.
            `reset(seed=...)` reseeds it. By default the one of a dm_control
            task or composer environment is found.
        render_mode: `None`, or "rgb_array" for `render` to return pictures of
            a dm_control environment's first camera.

    Example:

    >>> from dm_control import suite
    >>> env = keras_dreamer.envs.FromDmControl(suite.load("walker", "walk"))
    """

    metadata = {"render_modes": ["rgb_array"]}

    def __init__(
        self,
        env: Any,
        random_state: np.random.RandomState | None = None,
        render_mode: str | None = None,
    ) -> None:
        self._env = env
        self.render_mode = render_mode
        if render_mode:
            timestep = env.control_timestep()
            self.metadata = {**self.metadata, "render_fps": 1 / timestep}
        self._random_state = random_state or _find_random_state(env)
        self.observation_space = _space(env.observation_spec(), _observation)
        self.action_space = _space(env.action_spec(), _action)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self._reseed(seed)
        return self._observe(self._env.reset()), {}

    def step(self, action):
        timestep = self._env.step(self._to_spec(action))
        last = timestep.last()
        terminated = last and timestep.discount == 0
        return (
            self._observe(timestep),
            float(timestep.reward or 0.0),
            bool(terminated),
            bool(last and not terminated),
            {},
        )

    def render(self):
        """Returns a `(240, 320, 3)` uint8 array."""
        if self.render_mode is None:
            return None
        physics = self._env.physics
        if physics.contexts is None:
            raise RuntimeError(
                "nothing can render here: MUJOCO_GL="
                f"{os.environ.get('MUJOCO_GL')!r}. Set MUJOCO_GL=egl before "
                "Python starts (glfw with a display)."
            )
        camera = 0 if physics.model.ncam else -1
        return physics.render(240, 320, camera_id=camera)

    def close(self):
        self._env.close()

    def _reseed(self, seed):
        if self._random_state is None:
            warnings.warn(
                "The seed has no effect: no `np.random.RandomState` was found "
                f"in {type(self._env).__name__}. Pass the one it draws from "
                "as `FromDmControl(env, random_state=...)`.",
                stacklevel=3,
            )
        else:
            self._random_state.seed(seed % 2**32)

    def _observe(self, timestep):
        return _from_spec(self.observation_space, timestep.observation)

    def _to_spec(self, action):
        return _to_spec(self._env.action_spec(), action)


def suite_task(name, render_mode=None):
    """Finds a task of the suite by its published name.

    Args:
        name: str. "<domain>_<task>", such as "ball_in_cup_catch".
        render_mode: `None`, or "rgb_array" if it is going to be rendered.

    Returns:
        Tuple `(domain, task)` for `dm_control.suite.load`.
    """
    pairs = {
        f"{domain}_{task}": (domain, task)
        for domain, task in _suite(render_mode).ALL_TASKS
    }
    if name not in pairs:
        near = difflib.get_close_matches(name, pairs, n=5, cutoff=0.5)
        raise ValueError(
            "The name after 'dmc:' must be a task of the DeepMind Control "
            f"Suite. Received: {name!r}. Near matches: "
            f"{near or sorted(pairs)}."
        )
    return pairs[name]


def load_suite_task(
    domain, task, seed, task_kwargs=None, render_mode=None, **kwargs
):
    """Loads a task of the suite as a `gymnasium.Env`.

    Args:
        domain: str. Name of the domain.
        task: str. Name of the task.
        seed: int. Seed of the construction: some domains draw their model.
        task_kwargs: dict. Keyword arguments of the task.
        render_mode: `None` or "rgb_array".
        **kwargs: Other keyword arguments of `dm_control.suite.load`.

    Returns:
        `FromDmControl` environment.
    """
    task_kwargs = {"random": seed, **(task_kwargs or {})}
    suite = _suite(render_mode)
    env = suite.load(domain, task, task_kwargs=task_kwargs, **kwargs)
    tolerate_missing_opengl(env.physics)
    return FromDmControl(env, render_mode=render_mode)


def suite_tasks():
    """Returns all `(domain, task)` pairs of the suite."""
    return _suite().ALL_TASKS


def _suite(render_mode=None):
    _prepare_import(render_mode)
    from dm_control import suite

    return suite


def _prepare_import(render_mode=None):
    """Checks the packages, and avoids OpenGL unless the user asked for it."""
    if "dm_control" in sys.modules:
        return
    _require_packages()
    if "MUJOCO_GL" in os.environ:
        return
    for name in _renderers() if render_mode else ():
        os.environ["MUJOCO_GL"] = name
        try:
            importlib.import_module("dm_control._render")
            return
        except Exception:  # Its libraries raise all kinds.
            for module in [
                m for m in sys.modules if m.startswith("dm_control")
            ]:
                del sys.modules[module]
    os.environ["MUJOCO_GL"] = "disable"


def _renderers():
    """Returns the values of MUJOCO_GL that may work here."""
    if sys.platform != "linux" or os.environ.get("DISPLAY"):
        return ("glfw", "egl")
    return ("egl",)


def _require_packages():
    try:
        importlib.metadata.version("dm_control")
        mujoco = importlib.metadata.version("mujoco")
    except importlib.metadata.PackageNotFoundError as error:
        raise ImportError(
            "Environments named 'dmc:...' need the packages dm_control and "
            f"mujoco. Received: no package {error.name}. Run "
            "`pip install keras-dreamer[dmc]`."
        ) from error
    if int(mujoco.split(".")[0]) >= 4:
        raise ImportError(
            "dm_control needs mujoco below version 4. Received: "
            f"mujoco {mujoco}. Run `pip install 'mujoco<4'`."
        )


def _find_random_state(env):
    # Suite tasks keep it in `env.task.random`, composer in `env.random_state`.
    task = getattr(env, "task", None)
    for owner, name in (task, "random"), (env, "random_state"):
        found = getattr(owner, name, None)
        if isinstance(found, np.random.RandomState):
            return found
    return None


def _name(key):
    return key.replace("/", "_")


def _space(spec, convert):
    """Returns the space of a nest of specs."""
    if isinstance(spec, list | tuple):
        return spaces.Tuple([_space(entry, convert) for entry in spec])
    if not isinstance(spec, Mapping):
        return convert(spec)
    entries = {
        _name(key): _space(entry, convert) for key, entry in spec.items()
    }
    if len(entries) != len(spec):
        raise ValueError(
            "Keys must stay distinct when '/' is replaced by '_'. Received: "
            f"{sorted(spec)}. Rename one of them in the environment."
        )
    return spaces.Dict(entries)


def _from_spec(space, values):
    """Returns a nest of values in the form and dtypes of a space."""
    if isinstance(space, spaces.Tuple):
        pairs = zip(space.spaces, values, strict=True)
        return tuple(_from_spec(*pair) for pair in pairs)
    if isinstance(space, spaces.Dict):
        return {
            _name(key): _from_spec(space[_name(key)], value)
            for key, value in values.items()
        }
    # A copy: simulators may hand out views that change with the next step.
    return np.array(values, space.dtype).reshape(space.shape)


def _to_spec(spec, action):
    """Returns a nest of actions in the form of a nest of specs."""
    if isinstance(spec, list | tuple):
        pairs = zip(spec, action, strict=True)
        return [_to_spec(*pair) for pair in pairs]
    if isinstance(spec, Mapping):
        return {
            k: _to_spec(entry, action[_name(k)]) for k, entry in spec.items()
        }
    return action


def _observation(spec):
    count = getattr(spec, "num_values", None)  # Only `DiscreteArray` has it.
    if count is not None:
        return spaces.Discrete(count)
    if spec.dtype.kind == "f":
        return spaces.Box(-np.inf, np.inf, spec.shape, np.float32)
    if spec.dtype.kind == "b":
        return spaces.Box(0, 1, spec.shape, np.bool_)
    if spec.dtype.kind not in "iu":
        return spaces.Text(1)  # Which `Checked` refuses, naming the key.
    limits = np.iinfo(spec.dtype)
    return spaces.Box(limits.min, limits.max, spec.shape, spec.dtype)


def _action(spec):
    count = getattr(spec, "num_values", None)
    if count is not None:
        return spaces.Discrete(count)
    low = np.broadcast_to(getattr(spec, "minimum", -np.inf), spec.shape)
    high = np.broadcast_to(getattr(spec, "maximum", np.inf), spec.shape)
    return spaces.Box(
        np.where(low <= -_UNLIMITED, -np.inf, low).astype(spec.dtype),
        np.where(high >= _UNLIMITED, np.inf, high).astype(spec.dtype),
        dtype=spec.dtype,
    )
