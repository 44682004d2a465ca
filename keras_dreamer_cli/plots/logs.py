"""Runs as they were logged by `RunLog`."""

import dataclasses
import json
import pathlib

import numpy as np

from keras_dreamer_cli import folder

_EPISODE = ("env_steps", "agent_steps", "return", "length", "stream")
_VERSIONS = ("keras_dreamer", "keras", "backend")


@dataclasses.dataclass(frozen=True)
class Run:
    """A run, its settings and its numbers.

    Attributes:
        logdir: path.
        env: str, or `None` if nobody says what the environment was.
        seed: int or `None`.
        settings: dict of all other settings, one level deep.
        versions: dict of the versions that it was last run with.
        episodes: dict of `(N,)` arrays: `env_steps`, `agent_steps`, `return`,
            `length`, `stream`.
        epochs: dict of `(N,)` arrays, NaN where a number is missing.
        seconds: float. Time from the first to the last line, without the
            breaks before a resume.
    """

    logdir: pathlib.Path
    env: str | None
    seed: int | None
    settings: dict
    versions: dict
    episodes: dict
    epochs: dict
    seconds: float


def read_run(logdir, env=None):
    """Reads what a run has left in its folder.

    Args:
        logdir: path with the `log.jsonl` of `RunLog`, and `settings.json` if
            the command line made it.
        env: str. The environment, if there is no `settings.json`.

    Returns:
        `Run`.
    """
    logdir = pathlib.Path(logdir)
    parts = read_parts(logdir / "log.jsonl")
    start = next(e for e in reversed(parts) if e["event"] == "start")
    settings = {k: start.get(k) for k in ("backend", "config")}
    if (logdir / folder.SETTINGS).exists():
        settings |= folder.read(logdir)
    settings = {k: v for k, v in settings.items() if k not in _VERSIONS[:2]}
    env = settings.pop("env", env)
    seed = settings.pop("seed", start.get("seed"))
    events = continued(parts)
    return Run(
        logdir,
        env,
        seed,
        flat({**settings.pop("config"), **settings}),
        {name: start.get(name) for name in _VERSIONS},
        columns(events, "episode", _EPISODE),
        columns(events, "epoch"),
        duration(parts),
    )


def read_parts(path):
    """Returns the lines of a log as dicts. A line that is cut is left out."""
    if not path.exists():
        raise ValueError(
            "The folder of a run with a log is required. Received: "
            f"{path.parent}, which holds no {path.name}. Name the --logdir of "
            "`keras-dreamer train`, or add kd.callbacks.RunLog(logdir) to the "
            "callbacks of `fit`."
        )
    events = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            events.append(json.loads(line))
        except json.JSONDecodeError:  # The run was killed, or is writing.
            continue
    if not any(event["event"] == "start" for event in events):
        raise ValueError(
            "A log must begin with a line of the event 'start'. Received: "
            f"{path} without one. Check that RunLog has written it."
        )
    return events


def continued(events):
    """Drops what a resumed run has done again.

    A run that was killed goes on from its last checkpoint: what it had logged
    after that happens once more, at the same steps.

    Args:
        events: list of dicts, all lines of a log.

    Returns:
        List of the events that are not `start`, in the order of their steps.
    """
    kept, fresh = [], False
    for event in events:
        if event["event"] == "start":
            fresh = True
            continue
        if fresh:
            kept = [e for e in kept if _step(e) < _step(event)]
            fresh = False
        kept.append(event)
    return kept


def _step(event):
    return event.get("agent_steps") or event.get("updates") or 0


def columns(events, kind, names=None):
    """Returns the numbers of one kind of event, a dict of float arrays.

    Args:
        events: list of dicts.
        kind: str, their `event`.
        names: names of the numbers; by default all that occur.
    """
    events = [event for event in events if event["event"] == kind]
    if names is None:
        names = dict.fromkeys(name for event in events for name in event)
        names = [name for name in names if name != "event"]
    return {
        name: np.array(
            [np.nan if e.get(name) is None else e[name] for e in events], float
        )
        for name in names
    }


def duration(events):
    """Returns the seconds between lines, without those before a `start`."""
    return float(
        sum(
            max(0.0, after["time"] - before["time"])
            for before, after in zip(events, events[1:], strict=False)
            if after["event"] != "start"
        )
    )


def flat(settings):
    """Returns a nest of dicts as one dict with names joined by "/"."""
    found = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            inner = flat(value).items()
            found.update({f"{name}/{key}": entry for key, entry in inner})
        else:
            found[name] = value
    return found
