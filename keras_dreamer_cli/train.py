"""`keras-dreamer train`."""

import pathlib

import keras

import keras_dreamer as kd
from keras_dreamer.models.start_line import start_line
from keras_dreamer_cli import folder
from keras_dreamer_cli.presets import resolve
from keras_dreamer_cli.report import Report


def run(command):
    """Trains the agent of a `Train` command and saves it."""
    resolved = resolve(command)
    logdir = pathlib.Path(
        command.logdir or folder.default_logdir(command.env, command.seed)
    )
    config = resolved.config
    keras.config.set_dtype_policy(command.dtype)
    envs = kd.envs.make(
        command.env,
        num_envs=resolved.envs,
        action_repeat=config.action_repeat,
        seed=command.seed,
    )
    folder.create(logdir, _settings(command, resolved))
    model = kd.Dreamer(
        envs.single_observation_space,
        envs.single_action_space,
        config,
        seed=command.seed,
    )
    model.compile()
    replay = kd.replay.Replay(config, envs, seed=command.seed)
    driver = kd.Driver(envs, model, replay)
    total_steps = config.env_steps // config.action_repeat
    dataset = kd.replay.ReplayDataset(replay)
    callbacks = [
        kd.callbacks.TrainRatio(driver, config.train_ratio, total_steps),
        kd.callbacks.RunLog(logdir, wandb=command.wandb),
        keras.callbacks.ModelCheckpoint(logdir / folder.AGENT),
        Report(config.env_steps),
    ]
    if command.evaluate_every is not None:
        every = f"{command.evaluate_every} env steps"
        callbacks.append(kd.callbacks.Evaluate(command.env, every))
    print(start_line(model, dataset, callbacks))
    announce(command, resolved)
    model.fit(
        dataset,
        epochs=10**9,  # `TrainRatio` ends the run.
        steps_per_epoch=resolved.epoch,
        callbacks=callbacks,
        verbose=0,
    )
    model.save(logdir / folder.AGENT)
    print(f"Saved {logdir / folder.AGENT} after {driver.env_steps} env steps.")
    envs.close()


def announce(command, resolved):
    """Prints what is about to run, beside the line of `fit`."""
    config = resolved.config
    print(
        f"{command.env}: size {config.size}, recipe {config.recipe}, "
        f"{resolved.envs} environments, {config.env_steps:,} env steps, action "
        f"repeat {config.action_repeat}, replay ratio {config.train_ratio:g}\n"
        "The first update compiles, which takes a moment.",
        flush=True,
    )


def _settings(command, resolved):
    return {
        "env": command.env,
        "envs": resolved.envs,
        "seed": command.seed,
        "dtype": command.dtype,
        "backend": keras.backend.backend(),
        "keras_dreamer": kd.__version__,
        "keras": keras.__version__,
        "config": resolved.config.to_dict(),
    }
