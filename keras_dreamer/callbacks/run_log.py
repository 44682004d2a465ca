"""Writes what happens in a run to files and services."""

import os
import pathlib
import time
import warnings

import keras
import numpy as np

from keras_dreamer.callbacks.resumable import Resumable
from keras_dreamer.callbacks.sinks import JsonLines
from keras_dreamer.callbacks.sinks import TensorBoard
from keras_dreamer.callbacks.sinks import WandB
from keras_dreamer.version import __version__


class RunLog(Resumable, keras.callbacks.Callback):
    """Writes a run to `logdir/log.jsonl`, TensorBoard and W&B.

    Each line of `log.jsonl` is a JSON object with `event` and `time` (seconds
    since 1970):

    * `start`: once for each `fit`, with the versions, the backend and the
      configuration.
    * `episode`: after each episode of training, with `return`, `length` (in
      agent steps), `stream` (index of its environment), `agent_steps` and
      `env_steps`.
    * `epoch`: after each epoch, with everything in Keras's logs: the means of
      all loss terms, entropies, the range of returns (`retnorm/lo`,
      `retnorm/hi`), the norms of gradients before clipping (`grad_norm`, and
      `grad_norm/world_model`, `/actor`, `/critic`), what `TrainRatio` adds:
      `episode/return`, `env_steps`, `replay_ratio`, `updates/s`,
      `env_steps/s` and so on, and what `Evaluate` adds.

    TensorBoard and W&B get the same numbers over agent steps, or over updates
    when `fit` runs without `TrainRatio`. TensorBoard needs the package
    tensorboardX (extra `log`) and no TensorFlow, W&B the package wandb (extra
    `wandb`).

    What fails, for example because a package is missing or the disk is full,
    warns once and is left out from then on; training goes on.

    Args:
        logdir: path of the run. An existing log is continued.
        wandb: bool. Whether to send the run to Weights & Biases.
    """

    def __init__(
        self, logdir: str | os.PathLike[str], wandb: bool = False
    ) -> None:
        super().__init__()
        self.logdir = pathlib.Path(logdir)
        self._kinds = [JsonLines, TensorBoard, *([WandB] if wandb else [])]
        self._sinks = []
        self._ratio = None
        self._updates = 0

    def get_state(self):
        return {"updates": self._updates}

    def set_state(self, state):
        self._updates = state["updates"]

    def set_ratio(self, ratio):
        """Takes the `TrainRatio` of `fit`, or `None`."""
        self._ratio = ratio

    def on_train_begin(self, logs=None):
        start = {
            "event": "start",
            "time": time.time(),
            "keras_dreamer": __version__,
            "keras": keras.__version__,
            "backend": keras.backend.backend(),
            "seed": self._model.seed,
            "config": self._model.config.to_dict(),
        }
        self._sinks = []
        for kind in self._kinds:
            self._guard(
                kind.__name__,
                lambda kind=kind: self._sinks.append(kind(self.logdir, start)),
            )

    def on_epoch_begin(self, epoch, logs=None):
        # Of the epoch's episodes; a resumed epoch has some that are written.
        self._written = len(self._ratio.episodes) if self._ratio else 0

    def on_train_batch_end(self, batch, logs=None):
        self._updates += 1
        self._write_episodes()

    def on_epoch_end(self, epoch, logs=None):
        numbers = {name: _number(x) for name, x in (logs or {}).items()}
        event = {"event": "epoch", "time": time.time(), "epoch": epoch}
        step = numbers.get("agent_steps", self._updates)
        self._write({**event, "updates": self._updates, **numbers}, step)

    def on_train_end(self, logs=None):
        for sink in self._sinks:
            self._guard(type(sink).__name__, sink.close)
        self._sinks = []

    def _write_episodes(self):
        if self._ratio is None:
            return
        episodes = self._ratio.episodes[self._written :]
        self._written += len(episodes)
        for episode in episodes:
            event = {
                "event": "episode",
                "time": time.time(),
                "agent_steps": episode.step,
                "env_steps": episode.env_steps,
                "stream": episode.stream,
                "return": episode.episode_return,
                "length": episode.length,
            }
            self._write(event, episode.step)

    def _write(self, event, step):
        self._sinks = [
            sink
            for sink in self._sinks
            if self._guard(
                type(sink).__name__, lambda sink=sink: sink.write(event, step)
            )
        ]

    def _guard(self, name, function):
        """Calls a function; returns whether it went well."""
        try:
            function()
        except Exception as error:
            warnings.warn(
                f"{name} cannot log and is left out from now on; training "
                f"goes on. The reason: {error}",
                stacklevel=2,
            )
            return False
        return True


def _number(value):
    """Returns a NumPy scalar as a number of Python."""
    return value.item() if isinstance(value, np.generic) else value
