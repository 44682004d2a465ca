"""`keras-dreamer evaluate`."""

import numpy as np

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
    envs = kd.envs.make(
        settings["env"],
        num_envs=min(settings["envs"], command.episodes),
        action_repeat=settings["config"]["action_repeat"],
        seed=command.seed,
    )
    returns = kd.evaluate(
        policy.model,
        envs,
        command.episodes,
        deterministic=command.deterministic,
        seed=command.seed,
    )
    envs.close()
    print(summary(settings["env"], returns))


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


def summary(env, returns):
    """Returns the returns of episodes as one line."""
    text = f"{env}: return {np.mean(returns):.1f}"
    if len(returns) > 1:
        error = np.std(returns, ddof=1) / np.sqrt(len(returns))
        text += f" ± {1.96 * error:.1f} (95 % of the mean)"
    return (
        f"{text} over {len(returns)} episodes, from {np.min(returns):.1f} to "
        f"{np.max(returns):.1f}"
    )
