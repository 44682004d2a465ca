"""What a run leaves in its folder, for `evaluate` and for people."""

import json
import re

SETTINGS = "settings.json"
AGENT = "agent.keras"


def default_logdir(env, seed):
    """Returns the folder of a run that names none, a string."""
    return f"runs/{re.sub(r'[^A-Za-z0-9_.-]+', '_', env)}-seed{seed}"


def create(logdir, settings):
    """Makes the folder of a new run and writes its settings.

    Args:
        logdir: `pathlib.Path`.
        settings: dict for JSON.
    """
    if (logdir / SETTINGS).exists():
        raise ValueError(
            "`--logdir` must not hold another run. Received: "
            f"--logdir {logdir}. Choose another folder, or move that one away."
        )
    logdir.mkdir(parents=True, exist_ok=True)
    (logdir / SETTINGS).write_text(json.dumps(settings, indent=4) + "\n")


def read(logdir):
    """Returns the settings of a run, a dict."""
    path = logdir / SETTINGS
    if not path.exists():
        raise ValueError(
            "The folder of a run is required, as `keras-dreamer train` makes "
            f"it. Received: {logdir}, which holds no {SETTINGS}. Name the "
            "--logdir of the run."
        )
    return json.loads(path.read_text())
