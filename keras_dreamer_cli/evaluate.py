"""`keras-dreamer evaluate`."""

import functools

import keras_dreamer as kd
from keras_dreamer.checkpoints.folder import Folder
from keras_dreamer.checkpoints.saving import AGENT
from keras_dreamer_cli import folder


def run(command):
    """Plays episodes with the agent of a run and prints its returns."""
    settings = folder.read(command.logdir)
    file = agent(command.logdir)
    print(f"Playing with {file}", flush=True)
    policy = kd.Policy.load(file)
    envs = _make(settings, command)
    scores = kd.evaluate(
        policy,
        envs,
        command.episodes,
        deterministic=command.deterministic,
        record=command.record,
        seed=command.seed,
    )
    envs.close()
    print(f"{settings['env']}: {scores}")


def _make(settings, command):
    make = functools.partial(
        kd.envs.make,
        settings["env"],
        num_envs=min(settings["envs"], command.episodes),
        action_repeat=settings["config"]["action_repeat"],
        seed=command.seed,
    )
    if command.record is None:
        return make()
    try:
        return make(render_mode="rgb_array")
    except TypeError:  # Some cannot be rendered; `evaluate` will say so.
        return make()


def agent(logdir):
    """Returns the file of a run's newest agent.

    A run that has come to its end has one in its folder; before, those of the
    checkpoints count.
    """
    if (logdir / folder.AGENT).exists():
        return logdir / folder.AGENT
    checkpoints = Folder(logdir).finished()
    if not checkpoints:
        raise ValueError(
            "The run must have come to its first checkpoint. Received: "
            f"{logdir}, which holds no agent. Train on with `keras-dreamer "
            "train --resume`."
        )
    return checkpoints[-1] / AGENT
