"""What `make` takes: names, instances, classes and functions."""

import functools

import gymnasium

from keras_dreamer.envs.dm_control import FromDmControl
from keras_dreamer.envs.dm_control import load_suite_task
from keras_dreamer.envs.dm_control import suite_task

_FORMS = (
    "`env` must be 'gym:<id>', 'dmc:<domain>_<task>', a class of "
    "`gymnasium.Env` or `dm_env.Environment`, a function that returns an "
    "environment, or a single one"
)
_FACTORY = "pass `lambda: MyEnv(...)`, so that every environment is one of its"


def builder(env, render_mode=None):
    """Finds out how an environment is built.

    Args:
        env: as for `make`.
        render_mode: `None`, or "rgb_array" if it is going to be rendered.

    Returns:
        Function `(seed, **kwargs)` that returns a `gymnasium.Env`.
    """
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
    elif is_instance(env):
        instance = _adapt(env)
        return functools.partial(_build_callable, lambda: instance)
    elif callable(env):
        return functools.partial(_build_callable, env)
    raise ValueError(
        f"{_FORMS}. Received: env={env!r}. To use environments of your own, "
        f"{_FACTORY} own."
    )


def is_instance(env):
    """Whether this is an environment, of any library, and not a class."""
    return not isinstance(env, type) and (
        isinstance(env, gymnasium.Env)
        or _derives(env, "dm_env", "Environment")
        or _is_pettingzoo(env)
    )


def require_factory(num_envs, mode, on_env_error):
    """Refuses an instance where more than one environment may be needed."""
    alone = {"num_envs": 1, "mode": "sync", "on_env_error": "raise"}
    given = dict(num_envs=num_envs, mode=mode, on_env_error=on_env_error)
    if given != alone:
        raise ValueError(
            "An instance as `env` is the one environment, in this process: it "
            "needs num_envs=1, mode='sync' and on_env_error='raise'. Received: "
            f"{given}. To have more, {_FACTORY} own."
        )


def _build_gym(spec, seed, **kwargs):
    return gymnasium.make(spec, **kwargs)


def _build_callable(function, seed, **kwargs):
    return _adapt(function(**kwargs))


def _adapt(env):
    """Returns an environment of another library as a `gymnasium.Env`."""
    if isinstance(env, gymnasium.Env):
        return env
    if _derives(env, "dm_env", "Environment"):
        return FromDmControl(env)
    if _is_pettingzoo(env):
        raise ValueError(
            "The environment must have one agent. Received: the PettingZoo "
            f"environment {type(env).__name__}, in which several act. Wrap it "
            "in a `gymnasium.Env` that plays one of them and lets the others "
            "act by policies of their own, or one whose `Dict` action holds "
            "the actions of all and whose reward is their sum."
        )
    raise ValueError(
        "The function passed as `env` must return a `gymnasium.Env` or a "
        f"`dm_env.Environment`. Received: {type(env).__name__}. Let the class "
        "derive from one of them."
    )


def _is_pettingzoo(env):
    return _derives(env, "pettingzoo", "AECEnv", "ParallelEnv")


def _derives(env, package, *names):
    """Whether a class is among the bases, without importing its package."""
    return any(
        kind.__module__.split(".")[0] == package and kind.__name__ in names
        for kind in type(env).__mro__
    )
