"""`keras-dreamer envs`: the names that `train` takes."""

import importlib.util

import gymnasium

# Of gymnasium's own environments, those that need further packages.
_NEEDS = {"box2d": "Box2D", "mujoco": "mujoco", "phys2d": "jax"}
_NEEDS["tabular"] = "jax"
# Their observations are pictures, which `train` refuses. Only making an
# environment would tell of others, and that takes long and may open windows.
_PICTURES = (
    "ale_py.env:AtariEnv",
    "gymnasium.envs.box2d.car_racing:CarRacing",
)


def run(command):
    """Prints one name a line."""
    for name in [*gym_names(), *dmc_names()]:
        print(name)


def gym_names():
    """Returns the names of gymnasium's environments that `train` takes.

    Of several versions the newest.
    """
    newest = {}
    for spec in gymnasium.registry.values():
        name = (spec.namespace, spec.name)
        if _trainable(spec) and (spec.version or 0) >= (
            newest[name].version or 0 if name in newest else 0
        ):
            newest[name] = spec
    return sorted(f"gym:{spec.id}" for spec in newest.values())


def dmc_names():
    """Returns the names of dm_control's tasks, if it is installed."""
    if not importlib.util.find_spec("dm_control"):
        return []
    from keras_dreamer.envs.dm_control import suite_tasks

    return [f"dmc:{domain}_{task}" for domain, task in suite_tasks()]


def _trainable(spec):
    pictures = (
        spec.entry_point in _PICTURES and spec.kwargs.get("obs_type") != "ram"
    )
    return _available(spec.entry_point) and not pictures


def _available(entry_point):
    if entry_point is None:
        return False
    if callable(entry_point):
        # Gymnasium's own ones only say what is needed in their place.
        return entry_point.__module__.split(".")[0] != "gymnasium"
    module = entry_point.partition(":")[0]
    parts = module.split(".")
    if parts[:2] == ["gymnasium", "envs"]:
        needed = _NEEDS.get(parts[2])
        return needed is None or bool(importlib.util.find_spec(needed))
    return bool(importlib.util.find_spec(parts[0]))
