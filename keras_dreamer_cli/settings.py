"""What a run is made of: the content of `settings.json`."""

import keras

from keras_dreamer.config import Config
from keras_dreamer.version import __version__
from keras_dreamer_cli.presets import FLAGS
from keras_dreamer_cli.presets import resolve

# What a resumed run must not change, by the names on the command line. Of the
# config, `size` and `recipe`; the rest of it follows from them and the preset.
_FIXED = ("env", "envs", "seed", "preset", "size", "recipe")
_DEFAULTS = {
    "seed": 0,
    "dtype": "float32",
    "checkpoint_minutes": 10.0,
    "evaluate_every": None,
    "on_env_error": "raise",
}


def new(command):
    """Returns the settings of a new run.

    Args:
        command: `Train` of the command line.

    Returns:
        Dict for JSON.
    """
    resolved = resolve(command)
    given = {name: getattr(command, name) for name in _DEFAULTS}
    return {
        "env": command.env,
        "preset": resolved.preset,
        "envs": resolved.envs,
        "epoch": resolved.epoch,
        **_DEFAULTS,
        **{name: x for name, x in given.items() if x is not None},
        "wandb": command.wandb,
        **_versions(),
        "config": resolved.config.to_dict(),
    }


def resumed(command, saved):
    """Returns the settings of a run that goes on.

    What the command leaves out is as it was.

    Args:
        command: `Train` of the command line.
        saved: dict, the settings before.

    Returns:
        Dict for JSON.
    """
    config = Config(**saved["config"])
    known = {**saved, "size": config.size, "recipe": config.recipe}
    differ = [
        f"{name}: {getattr(command, name)!r} here, {known[name]!r} in the run"
        for name in _FIXED
        if getattr(command, name) not in (None, known[name])
    ]
    if differ:
        raise ValueError(
            "A run can only go on with the environments, seed and sizes it "
            f"was started with. Received: a command that differs in "
            f"{'; '.join(differ)}. Leave these out, or start another run in a "
            "--logdir of its own."
        )
    changed = {
        field: getattr(command, flag)
        for flag, field in FLAGS.items()
        if getattr(command, flag) is not None
    }
    free = {name: getattr(command, name) for name in _DEFAULTS}
    return {
        **_DEFAULTS,
        **saved,
        **{name: x for name, x in free.items() if x is not None},
        "wandb": command.wandb or saved["wandb"],
        **_versions(),
        "config": config.replace(**changed).to_dict(),
    }


def _versions():
    return {
        "backend": keras.backend.backend(),
        "keras_dreamer": __version__,
        "keras": keras.__version__,
    }
