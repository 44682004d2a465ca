"""A trained agent, and experience to look at it with."""

import dataclasses
import functools

import numpy as np

import keras_dreamer as kd
from keras_dreamer import inspection
from keras_dreamer.checkpoints.folder import Folder
from keras_dreamer_cli import folder

ROWS = 512  # Steps of a stream: a whole episode of dm_control.
STREAMS = 4
FORESEEN = 64  # Steps of a prediction, its context included.
WINDOWS = 16  # Predictions, of one window and of different ones.


@dataclasses.dataclass(frozen=True)
class Inspected:
    """What the pictures of a world model show.

    Attributes:
        source: str, where agent and experience are from.
        model: `Dreamer`.
        futures: `OpenLoop`, several predictions of one window.
        windows: `OpenLoop`, one prediction each of different windows.
        returns: `Returns`.
        usage: `LatentUsage`.
    """

    source: str
    model: kd.Dreamer
    futures: inspection.OpenLoop
    windows: inspection.OpenLoop
    returns: inspection.Returns
    usage: inspection.LatentUsage


def inspect(run):
    """Loads the agent of a run and computes what there is to see.

    Args:
        run: `Run`.

    Returns:
        `Inspected`.
    """
    checkpoints = Folder(run.logdir).finished()
    file = agent_file(run.logdir, checkpoints)
    model = kd.Policy.load(file).model
    if checkpoints and (checkpoints[-1] / "replay.npz").exists():
        replay = kd.replay.Replay.open(
            checkpoints[-1], model.config, capacity=64 * ROWS
        )
        where = f"the newest steps in checkpoint {checkpoints[-1].name}"
    else:
        replay = play(run, model)
        where = "episodes played for this report"
    batch = replay.read(newest(replay, model.config.replay_context))
    futures, windows = predictions(model, replay, batch)
    return Inspected(
        f"{file.relative_to(run.logdir)} on {where}",
        model,
        futures,
        windows,
        inspection.compare_returns(model, batch),
        inspection.latent_usage(model, batch),
    )


def agent_file(logdir, checkpoints):
    """Returns the path of the saved agent: its own file, or a checkpoint's."""
    places = [logdir, *reversed(checkpoints)]
    for place in places:
        if (place / folder.AGENT).exists():
            return place / folder.AGENT
    raise ValueError(
        f"A saved agent is required: {folder.AGENT} or a checkpoint in the "
        f"folder of the run. Received: {logdir} without one. It appears after "
        "the first epoch of `keras-dreamer train`."
    )


def play(run, model):
    """Steps the environment of a run; returns the replay of it."""
    if run.env is None:
        raise ValueError(
            "To play episodes the environment must be known. Received: "
            f"{run.logdir} with neither {folder.SETTINGS} nor a checkpoint. "
            "Name it by --env."
        )
    config = model.config
    envs = kd.envs.make(
        run.env,
        num_envs=STREAMS,
        action_repeat=config.action_repeat,
        seed=1000,
    )
    replay = kd.replay.Replay(config, envs)
    driver = kd.Driver(envs, model, replay)
    steps = STREAMS * (ROWS + config.replay_context)
    while driver.step < steps:
        driver.advance(steps - driver.step)
    envs.close()
    return replay


def newest(replay, context):
    """Returns the ids of the newest rows of some streams, `(N, L)`."""
    rows = ROWS
    while rows > 1:
        ids = replay.newest_ids(rows + context)
        if len(ids):
            return ids[:STREAMS]
        rows //= 2
    raise ValueError(
        "The saved replay must hold some steps. Received: an empty one. Train "
        "longer."
    )


def predictions(model, replay, batch):
    """Predicts several futures of one window, and one of several windows."""
    skipped = model.config.replay_context
    starts, steps = windows(batch["is_first"][:, skipped:], FORESEEN, WINDOWS)
    rows = np.arange(steps + skipped)
    ids = [batch["step_id"][stream, start + rows] for stream, start in starts]
    context = max(1, min(steps // 4, 10))
    predict = functools.partial(inspection.open_loop, model, context=context)
    ids = np.stack(ids)
    # The same number of rows: compiled once is enough.
    ids = ids[np.arange(WINDOWS) % len(ids)]
    one = np.repeat(ids[:1], WINDOWS, axis=0)
    return predict(replay.read(one)), predict(replay.read(ids))


def windows(is_first, most, count):
    """Finds windows that lie in one episode.

    Args:
        is_first: `(N, T)` bool array, T at least 2.
        most: int. Largest number of steps of a window.
        count: int. Largest number of windows.

    Returns:
        List of pairs (row, first step), spread over all there are, and the
        number of steps: that of the longest stretch without a reset, at most
        `most`.
    """
    stretches = []
    for row, flags in enumerate(is_first):
        cuts = [0, *(np.flatnonzero(flags[1:]) + 1), len(flags)]
        stretches += [
            (row, int(start), int(end - start))
            for start, end in zip(cuts, cuts[1:], strict=False)
        ]
    steps = min(most, max(length for *_, length in stretches))
    found = [
        (row, start + offset)
        for row, start, length in stretches
        for offset in range(0, length - steps + 1, steps)
    ]
    chosen = np.linspace(0, len(found) - 1, min(count, len(found)))
    return [found[round(index)] for index in chosen], steps
