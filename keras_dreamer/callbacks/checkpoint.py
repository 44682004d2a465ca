"""Saves a run, so that it can go on in another process."""

import os
import re
import time
import warnings

import keras

from keras_dreamer.checkpoints.folder import Folder
from keras_dreamer.checkpoints.saving import save

_SECONDS = {"second": 1.0, "minute": 60.0, "hour": 3600.0}


class Checkpoint(keras.callbacks.Callback):
    """Saves everything that a run is, for `keras_dreamer.resume`.

    A checkpoint is a directory `logdir/checkpoints/<number>` with the model
    and its optimizer (`agent.keras`, which also loads by itself), the replay
    with its latents and its sampler (`replay.npz` and `rows-*.npz`), and the
    counters, settings and versions (`state.json`). It gets its number when it
    is complete on the disk, so the newest one with a number is good whenever
    the process stops. Of the replay only the rows that were added or updated
    since the last checkpoint are written.

    When writing fails, for example because the disk is full, training goes on
    with a warning and the last checkpoint stays.

    One more checkpoint is made at the end of training.

    Args:
        logdir: path of the run. It must hold no checkpoints of another run:
            call `keras_dreamer.resume` to go on with them.
        every: int or string. A number of updates, or a time such as
            `"10 minutes"`, in seconds, minutes or hours.
        keep: int. Number of checkpoints to keep, 1 or more. Use 2 or more to
            have an older one when a file of the newest gets damaged.
    """

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        every: int | str = "10 minutes",
        keep: int = 2,
    ) -> None:
        super().__init__()
        self.updates, self.seconds = _interval(every)
        if keep < 1:
            raise ValueError(
                "`keep` must be the number of checkpoints to keep, 1 or more. "
                f"Received: keep={keep}. Use 2 to have a spare one."
            )
        self.keep = keep
        self.folder = Folder(logdir)
        self.newest = None  # Path of the run's last checkpoint.
        self._resumed = None  # Updates of `fit` before a resume.
        self._failed = False

    def set_run(self, dataset, callbacks):
        """Takes what else belongs to the run, from `fit`."""
        self._replay = getattr(dataset, "replay", None)
        self._callbacks = callbacks

    def resume(self, path, updates):
        """Goes on after a checkpoint.

        Args:
            path: path of the checkpoint.
            updates: int. Updates of `fit` before it was made.
        """
        self.newest = path
        self._resumed = updates

    def initial_epoch(self, steps_per_epoch):
        """Returns the epoch in which `fit` goes on."""
        return (self._resumed or 0) // (steps_per_epoch or 1)

    def on_train_begin(self, logs=None):
        if self.newest is None and self.folder.finished():
            raise ValueError(
                "`logdir` must hold no checkpoints of another run. Received: "
                f"{str(self.folder.path)!r} with "
                f"{[path.name for path in self.folder.finished()]}. Call "
                "kd.resume(logdir, model, dataset, callbacks) before `fit` to "
                "go on with that run, or choose another logdir."
            )
        self._done = self._resumed  # Updates of this `fit`, earlier epochs too.
        self._stop_at = None
        if self._resumed is not None and self.params.get("steps"):
            # The first epoch goes on in its middle but has all its steps.
            self._stop_at = self.params["epochs"] * self.params["steps"]
        self._resumed = None
        self._restart(self._done)

    def on_epoch_begin(self, epoch, logs=None):
        if self._done is None:
            self._done = epoch * (self.params.get("steps") or 0)
            self._restart(self._done)

    def on_train_batch_end(self, batch, logs=None):
        self._done += 1
        if self._done == self._stop_at:
            self._model.stop_training = True
        # At the end of an epoch its logs come first.
        if self._done % (self.params.get("steps") or self._done + 1):
            self._save_if_due()

    def on_epoch_end(self, epoch, logs=None):
        self._save_if_due()

    def on_train_end(self, logs=None):
        if self._done != self._saved:
            self.save()

    def save(self) -> None:
        """Makes a checkpoint now, between two updates."""
        try:
            with self.folder.new() as path:
                save(
                    path,
                    self.newest,
                    self.model,  # Fetches the newest variables on JAX.
                    self._replay,
                    self._callbacks,
                    updates=self._done,
                    steps_per_epoch=self.params.get("steps"),
                )
            self.newest = path.with_suffix("")  # It is finished now.
            self.folder.keep(self.keep)
            self._failed = False
        except (OSError, RuntimeError) as error:  # h5py raises both.
            if not self._failed:
                warnings.warn(
                    f"No checkpoint could be written: {error}. Training goes "
                    f"on; the last one is {self.newest}. The next attempts "
                    "fail silently until one succeeds.",
                    stacklevel=2,
                )
            self._failed = True
        self._restart(self._done)

    def _restart(self, done):
        self._saved = done
        self._time = time.monotonic()

    def _save_if_due(self):
        updates = self._done - self._saved
        if updates and (
            updates >= self.updates
            or time.monotonic() - self._time >= self.seconds
        ):
            self.save()


def _interval(every):
    """Returns numbers of updates and of seconds, one of them infinite."""
    never = float("inf")
    if isinstance(every, int) and every > 0:
        return every, never
    match = re.fullmatch(
        r"(\d+(?:\.\d+)?) (second|minute|hour)s?", str(every).strip()
    )
    if match and float(match[1]) > 0:
        return never, float(match[1]) * _SECONDS[match[2]]
    raise ValueError(
        "`every` must be a number of updates or a time. Received: "
        f"every={every!r}. Use for example 1000, '90 seconds', '10 minutes' or "
        "'1 hour'."
    )
