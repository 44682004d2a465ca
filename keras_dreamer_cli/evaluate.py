"""`keras-dreamer evaluate`."""

import numpy as np

import keras_dreamer as kd
from keras_dreamer_cli import folder


def run(command):
    """Plays episodes with the agent of a run and prints its returns."""
    settings = folder.read(command.logdir)
    policy = kd.Policy.load(command.logdir / folder.AGENT)
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
