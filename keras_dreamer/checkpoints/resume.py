"""Going on with a run in another process."""

import dataclasses
import os
import pathlib
import zipfile
from typing import TYPE_CHECKING
from typing import Any

import keras

from keras_dreamer.callbacks.checkpoint import Checkpoint
from keras_dreamer.checkpoints import record
from keras_dreamer.checkpoints import settings
from keras_dreamer.checkpoints.folder import Folder
from keras_dreamer.checkpoints.saving import AGENT
from keras_dreamer.checkpoints.saving import named
from keras_dreamer.replay.files import DamagedFile
from keras_dreamer.replay.files import damage_named

if TYPE_CHECKING:
    from keras_dreamer.models.dreamer import Dreamer
    from keras_dreamer.replay.dataset import ReplayDataset


@dataclasses.dataclass(frozen=True)
class Resumed:
    """Where a run goes on.

    Attributes:
        path: path of the checkpoint.
        updates: int. Updates of `fit` before it was made.
        epoch: int. Epoch of `fit` in which it was made, from 0.
    """

    path: pathlib.Path
    updates: int
    epoch: int


def resume(
    logdir: str | os.PathLike[str],
    model: "Dreamer",
    dataset: "ReplayDataset",
    callbacks: Any = (),
    checkpoint: str | None = None,
) -> Resumed:
    """Restores the newest checkpoint of a run, before `fit` goes on with it.

    Everything is made as for a new run and handed over as to `fit`:

        callbacks = [TrainRatio(driver, ratio=512), Checkpoint(logdir)]
        if args.resume:
            kd.resume(logdir, model, dataset, callbacks)
        model.fit(dataset, epochs=125, steps_per_epoch=1000,
                  callbacks=callbacks)

    Updates go on exactly as if nothing had happened. Environments start new
    episodes; the abandoned ones are cut there. Budgets, that is `epochs` and
    `total_steps`, count from the start of the run. They may be others than
    before, and so may the ratio, the backend and the dtype. Sizes, recipe,
    spaces and optimizer must be the same. `fit` begins in the epoch of the
    checkpoint if `callbacks` holds a `Checkpoint`.

    Nothing is changed if an error is raised.

    Args:
        logdir: path of the run, wherever it is now.
        model: compiled `Dreamer`.
        dataset: `ReplayDataset`, whose replay is overwritten.
        callbacks: list of the callbacks for `fit`. The state of each
            `Resumable` is restored.
        checkpoint: name of an older checkpoint in `logdir/checkpoints`, such
            as `"00000007"`. By default the newest.

    Returns:
        `Resumed`.
    """
    folder = Folder(logdir)
    path = _choose(folder, checkpoint)
    if not model.compiled:
        raise ValueError(
            "The model must be compiled before `resume`, so that the optimizer "
            "is restored, too. Received a model without an optimizer. Call "
            "model.compile() first."
        )
    try:
        state = record.read(path)
        settings.check(path, state["settings"], model)
        _verify(path / AGENT)
        if state["replay"] and dataset.replay is not None:
            dataset.replay.load(path)
    except DamagedFile as error:
        raise ValueError(f"{error} {_offer(folder, path)}") from error
    model.load_weights(path / AGENT)
    model.seed = state["seed"]  # That of the noise of actions.
    callbacks = keras.tree.flatten(callbacks)
    states = state["callbacks"]
    for name, callback in named(callbacks).items():
        if name in states:
            callback.set_state(states[name])
    for callback in callbacks:
        if isinstance(callback, Checkpoint):
            callback.resume(path, state["updates"])
    epoch = state["updates"] // (state["steps_per_epoch"] or 1)
    return Resumed(path, state["updates"], epoch)


def _choose(folder, checkpoint):
    names = [path.name for path in folder.finished()]
    if not names:
        raise ValueError(
            "`logdir` must hold a checkpoint to go on from. Received: "
            f"{str(folder.path)!r} without one. Check the path, or start a new "
            "run."
        )
    if checkpoint is None:
        return folder.path / names[-1]
    if str(checkpoint) not in names:
        raise ValueError(
            f"`checkpoint` must be one of {names}. Received: "
            f"checkpoint={checkpoint!r}. Leave it out for the newest."
        )
    return folder.path / str(checkpoint)


def _verify(path):
    """Checks the checksums in a `.keras` file."""
    with damage_named(path), zipfile.ZipFile(path) as file:
        wrong = file.testzip()
        if wrong:
            raise ValueError(f"the checksum of {wrong} is another one")


def _offer(folder, path):
    """Tells which older checkpoint looks complete."""
    for older in reversed(folder.finished()):
        if older.name >= path.name:
            continue
        try:
            record.read(older)
        except ValueError:
            continue
        return (
            f"The checkpoint before it is kd.resume(..., "
            f"checkpoint={older.name!r})."
        )
    return "There is no older checkpoint; start a new run in another logdir."
