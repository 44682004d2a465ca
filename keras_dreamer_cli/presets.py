"""Settings by name, and what the command line changes in them."""

import dataclasses

from keras_dreamer.config import Config

# Each: what `Config` gets, the number of environments, updates per epoch.
PRESETS = {
    # The protocols of the published numbers (item 7.5).
    "dmc-proprio-paper": ({"size": "12m", "recipe": "paper"}, 16, 1000),
    "dmc-proprio-head": ({"size": "1m", "recipe": "head"}, 16, 1000),
    # Our own, of examples/cartpole.py: two cores learn CartPole in minutes.
    "gym-small": (
        {
            "size": "small",
            "recipe": "paper",
            "lr": 1e-3,
            "warmup": 200,
            "batch_length": 16,
            "train_ratio": 256.0,
            "action_repeat": 1,
            "env_steps": 100_000,
        },
        4,
        100,
    ),
}
# Names on the command line and in `Config`.
FLAGS = {
    "size": "size",
    "recipe": "recipe",
    "ratio": "train_ratio",
    "steps": "env_steps",
}


@dataclasses.dataclass(frozen=True)
class Resolved:
    """All settings of a run.

    Attributes:
        preset: str. Name of the preset.
        config: `Config`.
        envs: int. Number of environments.
        epoch: int. Updates per epoch.
        origins: dict from names of `config`'s fields to where their values
            come from, for those that the preset or the command line set.
    """

    preset: str
    config: Config
    envs: int
    epoch: int
    origins: dict


def resolve(settings):
    """Puts a preset and the command line together.

    Args:
        settings: `Train` or `Config` of the command line.

    Returns:
        `Resolved`.
    """
    name = settings.preset
    if name is None:
        dmc = settings.env.startswith("dmc:")
        name = "dmc-proprio-paper" if dmc else "gym-small"
    fields, envs, epoch = PRESETS[name]
    given = {
        field: getattr(settings, flag)
        for flag, field in FLAGS.items()
        if getattr(settings, flag) is not None
    }
    origins = dict.fromkeys(fields, f"preset {name}")
    flags = {field: flag for flag, field in FLAGS.items()}
    origins.update({field: f"--{flags[field]}" for field in given})
    envs = envs if settings.envs is None else settings.envs
    config = Config(**{**fields, **given})
    return Resolved(name, config, envs, epoch, origins)
