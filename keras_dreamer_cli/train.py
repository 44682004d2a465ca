"""`keras-dreamer train`."""

import contextlib
import os
import shlex

import keras

import keras_dreamer as kd
from keras_dreamer.checkpoints.folder import Folder
from keras_dreamer.models.start_line import start_line
from keras_dreamer_cli import folder
from keras_dreamer_cli.report import Report
from keras_dreamer_cli.settings import new
from keras_dreamer_cli.settings import resumed

INTERRUPTED = 130  # What shells return for a process that Ctrl-C has ended.


def run(command):
    """Trains the agent of a `Train` command and saves it.

    Returns:
        int, the exit status.
    """
    logdir = folder.logdir(command)
    if command.resume:
        settings = resumed(command, folder.read(logdir))
    else:
        settings = new(command)
    keras.config.set_dtype_policy(settings["dtype"])
    envs = kd.envs.make(
        settings["env"],
        num_envs=settings["envs"],
        action_repeat=settings["config"]["action_repeat"],
        seed=settings["seed"],
        on_env_error=settings["on_env_error"],
    )
    with contextlib.closing(envs):
        if not command.resume:
            folder.create(logdir, settings)
        kd.configure_runtime()
        return _train(envs, settings, logdir, command.resume)


def _train(envs, settings, logdir, resume):
    config, seed = kd.Config(**settings["config"]), settings["seed"]
    model = kd.Dreamer(
        envs.single_observation_space,
        envs.single_action_space,
        config,
        seed=seed,
    )
    model.compile()
    replay = kd.replay.Replay(config, envs, seed=seed)
    driver = kd.Driver(envs, model, replay)
    dataset = kd.replay.ReplayDataset(replay)
    total_steps = config.env_steps // config.action_repeat
    minutes = settings["checkpoint_minutes"]
    checkpoint = kd.callbacks.Checkpoint(logdir, every=f"{minutes} minutes")
    callbacks = [
        kd.callbacks.TrainRatio(driver, config.train_ratio, total_steps),
        kd.callbacks.RunLog(logdir, wandb=settings["wandb"]),
        Report(config.env_steps),
        checkpoint,
    ]
    if settings["evaluate_every"] is not None:
        every = f"{settings['evaluate_every']} env steps"
        callbacks.append(kd.callbacks.Evaluate(settings["env"], every))
    if resume:
        _resume(logdir, model, dataset, callbacks)
        _require_steps_left(driver, total_steps, config)
        folder.write(logdir, settings)
        # From now on the checkpoints hold newer ones.
        (logdir / folder.AGENT).unlink(missing_ok=True)
    print(start_line(model, dataset, callbacks))
    announce(settings, config)
    with contextlib.suppress(KeyboardInterrupt):  # The second Ctrl-C.
        model.fit(
            dataset,
            epochs=10**9,  # `TrainRatio` ends the run.
            steps_per_epoch=settings["epoch"],
            callbacks=callbacks,
            verbose=0,
        )
    if driver.step < total_steps:  # Ctrl-C, then: nothing else ends `fit`.
        print(interruption(logdir, driver.env_steps, checkpoint.newest))
        return INTERRUPTED
    _save(model, logdir)
    print(f"Saved {logdir / folder.AGENT} after {driver.env_steps} env steps.")
    return 0


def _resume(logdir, model, dataset, callbacks):
    """Restores the run, if it came as far as its first checkpoint."""
    if Folder(logdir).finished():
        found = kd.resume(logdir, model, dataset, callbacks)
        print(f"Going on after {found.updates:,} updates: {found.path}")
    else:
        print(f"{logdir} holds no checkpoint yet: the run starts anew.")


def _require_steps_left(driver, total_steps, config):
    if driver.step >= total_steps:
        raise ValueError(
            "`--resume` needs a run with steps left. Received: a run that has "
            f"made all of its {config.env_steps:,} env steps. Give it more, "
            f"for example --steps {2 * config.env_steps}."
        )


def _save(model, logdir):
    """Saves the trained agent; at no time is half of it there."""
    unfinished = logdir / f"unfinished-{folder.AGENT}"
    model.save(unfinished)
    os.replace(unfinished, logdir / folder.AGENT)


def announce(settings, config):
    """Prints what is about to run, beside the line of `fit`."""
    print(
        f"{settings['env']}: size {config.size}, recipe {config.recipe}, "
        f"{settings['envs']} environments, {config.env_steps:,} env steps, "
        f"action repeat {config.action_repeat}, replay ratio "
        f"{config.train_ratio:g}\n"
        "The first update compiles, which takes a moment.",
        flush=True,
    )


def interruption(logdir, env_steps, checkpoint):
    """Returns what to say after Ctrl-C.

    Args:
        logdir: path of the run.
        env_steps: int. Environment steps so far.
        checkpoint: path of the last checkpoint, or `None`.
    """
    saved = f"saved in {checkpoint}" if checkpoint else "nothing to save yet"
    return (
        f"Interrupted after {env_steps:,} env steps, {saved}. Go on with\n"
        f"  keras-dreamer train --resume --logdir {shlex.quote(str(logdir))}"
    )
