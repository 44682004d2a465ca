"""What a run leaves in its folder, for `evaluate`, `--resume` and people."""

import json
import os
import pathlib
import re

SETTINGS = "settings.json"
AGENT = "agent.keras"


def logdir(command):
    """Returns the folder of a `Train` command, a `pathlib.Path`."""
    if command.logdir is not None:
        return command.logdir
    if command.env is None:
        raise ValueError(
            "`train` needs to know the run. Received: neither an environment "
            "nor --logdir. Give gym:<id> or dmc:<domain>_<task> for a new run; "
            "`keras-dreamer envs` lists them."
        )
    return pathlib.Path(default_logdir(command.env, command.seed or 0))


def default_logdir(env, seed):
    """Returns the folder of a run that names none, a string."""
    return f"runs/{re.sub(r'[^A-Za-z0-9_.-]+', '_', env)}-seed{seed}"


def create(path, settings):
    """Makes the folder of a new run and writes its settings.

    Args:
        path: `pathlib.Path`.
        settings: dict for JSON.
    """
    if (path / SETTINGS).exists():
        raise ValueError(
            "`--logdir` must not hold another run. Received: "
            f"--logdir {path}. Choose another folder, move that one away, or "
            "go on with it by --resume."
        )
    path.mkdir(parents=True, exist_ok=True)
    write(path, settings)


def write(path, settings):
    """Writes settings; at no time is half of them there."""
    unfinished = path / f"{SETTINGS}.unfinished"
    unfinished.write_text(json.dumps(settings, indent=4) + "\n")
    os.replace(unfinished, path / SETTINGS)


def read(path):
    """Returns the settings of a run, a dict."""
    if not (path / SETTINGS).exists():
        raise ValueError(
            "The folder of a run is required, as `keras-dreamer train` makes "
            f"it. Received: {path}, which holds no {SETTINGS}. Name the "
            "--logdir of the run."
        )
    return json.loads((path / SETTINGS).read_text())


def backend(command):
    """Returns the backend of the run that a command goes on with, or None."""
    if not getattr(command, "resume", False):
        return None
    return read(logdir(command))["backend"]
