"""`keras-dreamer evaluate`."""

import functools

import keras_dreamer as kd
from keras_dreamer_cli import folder


def run(command):
    """Plays episodes with the agent of a run and prints its returns."""
    settings = folder.read(command.logdir)
    policy = kd.Policy.load(command.logdir / folder.AGENT)
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
