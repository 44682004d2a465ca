"""Which runs are seeds of the same thing."""

import dataclasses

from keras_dreamer.config import RECIPES
from keras_dreamer.config import SIZES

# The length of a run changes nothing in what it does until its end.
_BUDGET = "env_steps"
_NAMED = 4  # Most settings in a name.


@dataclasses.dataclass(frozen=True)
class Group:
    """Runs that differ in their seeds only.

    Attributes:
        label: str, what a legend calls them.
        env: str or `None`.
        runs: list of `Run`s.
    """

    label: str
    env: str | None
    runs: list


def group_runs(runs):
    """Puts runs of the same environment and settings together.

    Args:
        runs: list of `Run`s.

    Returns:
        List of `Group`s, in the order of their first runs.
    """
    groups = {}
    for run in runs:
        key = (run.env, tuple(sorted(map(repr, _compared(run).items()))))
        groups.setdefault(key, []).append(run)
    firsts = [members[0] for members in groups.values()]
    return [
        Group(label, members[0].env, members)
        for label, members in zip(labels(firsts), groups.values(), strict=True)
    ]


def labels(runs):
    """Names runs by the settings in which those of an environment differ.

    Args:
        runs: list of `Run`s of different groups.

    Returns:
        List of different strings. The environment is named where it says
        something, and the folder where nothing else does.
    """
    several = len({run.env for run in runs}) > 1
    found = []
    for run in runs:
        peers = [other for other in runs if other.env == run.env]
        names = [
            name
            for name in differing(peers)
            if all(name in peer.settings for peer in peers)
        ]
        parts = [
            f"{name} {_short(run.settings[name])}" for name in names[:_NAMED]
        ]
        if several or not parts:
            parts.insert(0, run.env or run.logdir.name)
        found.append(", ".join(parts))
    return [
        label if found.count(label) == 1 else f"{label} ({run.logdir.name})"
        for label, run in zip(found, runs, strict=True)
    ]


def differing(runs):
    """Returns the names of the settings in which runs differ.

    Those that follow from the size or the recipe are left out if that
    differs.
    """
    names = dict.fromkeys(name for run in runs for name in _compared(run))
    differ = [
        name
        for name in names
        if len({repr(run.settings.get(name)) for run in runs}) > 1
    ]
    implied = set()
    for name, presets in (("size", SIZES), ("recipe", RECIPES)):
        if name in differ:
            implied |= {key for preset in presets.values() for key in preset}
    return [name for name in differ if name not in implied]


def _compared(run):
    return {k: v for k, v in run.settings.items() if k != _BUDGET}


def _short(value):
    return f"{value:g}" if isinstance(value, float) else str(value)
