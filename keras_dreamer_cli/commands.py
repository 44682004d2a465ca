"""The commands and their arguments, as dataclasses. Imports no Keras."""

import dataclasses
import pathlib
import typing
from typing import Annotated

import tyro

Backend = typing.Literal["jax", "tensorflow", "torch"]
Size = typing.Literal[
    "small", "1m", "12m", "25m", "50m", "100m", "200m", "400m"
]
Preset = typing.Literal["dmc-proprio-paper", "dmc-proprio-head", "gym-small"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """What a run is made of; everything left out follows from the preset."""

    preset: Preset | None = None
    """Where the defaults come from. Without it: dmc-proprio-paper for dmc: and
    gym-small for other environments."""
    size: Size | None = None
    """Size of the networks."""
    recipe: typing.Literal["paper", "head"] | None = None
    """Variant of the algorithm: of the published curves, or the newest code."""
    ratio: float | None = None
    """Replay ratio: trained steps per agent step."""
    steps: int | None = None
    """Environment steps of the run; a repeated action counts every time."""
    envs: int | None = None
    """Number of environments that are stepped together."""
    seed: int | None = None
    """Seed of weights, environments, replay and noise, 0 if not given."""
    dtype: typing.Literal["float32", "mixed_bfloat16"] | None = None
    """What the networks compute in, float32 if not given."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class OnBackend:
    """Commands that compute."""

    backend: Backend | None = None
    """Backend of Keras. Without it: KERAS_BACKEND, or what is installed."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Train(Settings, OnBackend):
    """Trains an agent. Ctrl-C saves the run; --resume goes on with it."""

    module: typing.ClassVar = "train"

    env: tyro.conf.Positional[str | None] = None
    """gym:<id> or dmc:<domain>_<task>; `keras-dreamer envs` lists them."""
    logdir: pathlib.Path | None = None
    """Folder of the run, by default runs/<env>-seed<seed>. It must not hold
    another run."""
    resume: bool = False
    """Goes on with the run in --logdir, with its environment and settings.
    --steps, --ratio, --dtype, --backend, --checkpoint-minutes,
    --evaluate-every and --on-env-error may change them."""
    checkpoint_minutes: float | None = None
    """Minutes between two checkpoints, 10 if not given."""
    on_env_error: typing.Literal["raise", "restart"] | None = None
    """What to do when an environment raises: end the run, which is done if not
    given, or put a fresh one in its place."""
    wandb: bool = False
    """Whether to send the log to Weights & Biases."""
    evaluate_every: int | None = None
    """Environment steps after which 10 episodes are played apart from
    training. Without it, no evaluations."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evaluate(OnBackend):
    """Plays episodes with the agent of a run."""

    module: typing.ClassVar = "evaluate"

    logdir: tyro.conf.Positional[pathlib.Path]
    """Folder of the run."""
    episodes: int = 20
    """How many to play."""
    deterministic: bool = False
    """Whether to take the modes; the published agent samples."""
    record: pathlib.Path | None = None
    """Video of the first episode, .mp4 or .gif, where the environment can be
    rendered."""
    seed: int = 1000
    """Seed of the environments and of the actions' noise."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plot(OnBackend):
    """Draws learning curves, losses and what the world model foresees, as PNG
    files and one report to open in a browser."""

    module: typing.ClassVar = "plot"

    logdirs: tyro.conf.Positional[
        Annotated[tuple[pathlib.Path, ...], tyro.conf.arg(metavar="LOGDIR ...")]
    ]
    """Folders of runs. Those that differ in the seed only become one curve."""
    out: pathlib.Path | None = None
    """Folder for the files, by default `plots` in the run's folder, or beside
    the folders of several runs."""
    env: str | None = None
    """Environment of runs that were not made by `train`, for the published
    curve and for playing episodes: dmc:<domain>_<task> or gym:<id>."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Info(OnBackend):
    """Prints versions, backend and devices, for reports of bugs."""

    module: typing.ClassVar = "info"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Envs:
    """Lists the environments that are installed."""

    module: typing.ClassVar = "environments"
    backend: typing.ClassVar = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Prints all settings of a run and where each comes from."""

    module: typing.ClassVar = "config"
    backend: typing.ClassVar = None

    env: tyro.conf.Positional[str] = "dmc:walker_walk"
    """The environment, which chooses the preset when none is named."""


Command = (
    Annotated[Train, tyro.conf.subcommand("train")]
    | Annotated[Evaluate, tyro.conf.subcommand("evaluate")]
    | Annotated[Plot, tyro.conf.subcommand("plot")]
    | Annotated[Info, tyro.conf.subcommand("info")]
    | Annotated[Envs, tyro.conf.subcommand("envs")]
    | Annotated[Config, tyro.conf.subcommand("config")]
)


def parse(arguments=None):
    """Returns the command of a list of arguments, by default `sys.argv`'s."""
    return tyro.cli(
        Command,
        prog="keras-dreamer",
        description="DreamerV3 for Keras 3.",
        args=arguments,
        config=(tyro.conf.FlagCreatePairsOff,),
    )
