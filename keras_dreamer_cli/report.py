"""One line of progress for each epoch."""

import math
import time

import keras

from keras_dreamer.callbacks.progress import clock


class Report(keras.callbacks.Callback):
    """Prints steps, return, loss, speeds and the time left.

    Args:
        env_steps: int. Environment steps of the run.
    """

    def __init__(self, env_steps):
        super().__init__()
        self.env_steps = env_steps

    def on_train_begin(self, logs=None):
        self._started = time.monotonic()

    def on_epoch_end(self, epoch, logs=None):
        now = time.monotonic()
        steps, speed = logs["env_steps"], logs["env_steps/s"]
        left = (self.env_steps - steps) / speed if speed > 0 else None
        score = logs.get("evaluation/return", math.nan)
        evaluation = "" if math.isnan(score) else f"evaluation {score:.1f}  "
        print(
            f"{clock(now - self._started)}  "
            f"{steps:>9,} of {self.env_steps:,} env steps  "
            f"{logs['updates']:>7,} updates  "
            f"return {logs['episode/return']:7.1f}  {evaluation}"
            f"loss {logs['loss']:7.2f}  "
            f"{logs['updates/s']:.1f} updates/s  {speed:.0f} env steps/s  "
            f"{clock(left)} left",
            flush=True,
        )
