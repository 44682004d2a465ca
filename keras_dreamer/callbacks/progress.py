"""Progress of a run on one line."""

import math
import shutil
import sys
import time

import keras

# What is shown of the logs. What comes last is left out first where a line is
# too long for the terminal.
_SHOWN = {
    "loss": "loss {:.2f}",
    "episode/return": "return {:.1f}",
    "evaluation/return": "evaluation {:.1f}",
    "env_steps": "{:,.0f} env steps",
    "left": "{} left",
    "updates/s": "{:.1f} updates/s",
    "env_steps/s": "{:,.0f} env steps/s",
    "replay_ratio": "ratio {:.4g}",
}
_INTERVAL = 0.1  # Seconds between two lines on a terminal.


class Progress(keras.callbacks.ProgbarLogger):
    """Progress bar of Keras with what matters in a run.

    Shows epoch and update, loss, return, environment steps, the time left,
    the speeds and the replay ratio. On a terminal and in a notebook the line
    is live, elsewhere there is one a epoch. A return stays until there is a
    newer one.

    The time left follows from the speed since the first update, which
    compiles, and from the updates that are left of `epochs` or of the budget
    of `TrainRatio`.
    """

    def __init__(self):
        super().__init__()
        self._ratio = None

    def set_ratio(self, ratio):
        """Takes the `TrainRatio` of `fit`, or `None`."""
        self._ratio = ratio

    def on_train_begin(self, logs=None):
        super().on_train_begin()
        self._values = {}
        self._updates = 0
        self._width = 0  # Of the line on the screen, 0 after its end.
        self._shown = -math.inf
        self._live = self.verbose == 1 and (
            sys.stdout.isatty() or "ipykernel" in sys.modules
        )

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch = epoch
        self.seen = 0

    def on_train_batch_end(self, batch, logs=None):
        now = time.monotonic()
        if not self._updates:
            self._started = now
        self._updates += 1
        self.seen = batch + 1
        if self._live and now - self._shown >= _INTERVAL:
            self._shown = now
            self._show(logs, now)

    def on_epoch_end(self, epoch, logs=None):
        if self.verbose:
            self._show(logs, time.monotonic())
            self._end_line()

    def on_train_end(self, logs=None):
        self._end_line()

    def _show(self, logs, now):
        logs = {**(logs or {}), "left": clock(self._seconds_left(now))}
        for name, text in _SHOWN.items():
            value = logs.get(name)
            known = isinstance(value, str) or math.isfinite(value or 0)
            if value is not None and known:
                self._values[name] = text.format(value)
        parts = [self._position()]
        parts += [self._values[name] for name in _SHOWN if name in self._values]
        line = "  ".join(parts)
        if self._live:
            columns = shutil.get_terminal_size().columns
            while len(line) >= columns and len(parts) > 1:
                line = "  ".join(parts[:-1])
                parts.pop()
            line = "\r" + line.ljust(self._width)
            self._width = len(line.rstrip())
        print(line, end="" if self._live else "\n", flush=True)

    def _end_line(self):
        if self._width:
            print(flush=True)
            self._width = 0

    def _position(self):
        # A budget of steps ends the run, not the number of epochs.
        budget = self._ratio is not None and self._ratio.total_steps is not None
        of_epochs = "" if budget else f"/{self.epochs}"
        of_steps = f"/{self.target}" if self.target else ""
        return f"Epoch {self._epoch + 1}{of_epochs}  {self.seen}{of_steps}"

    def _seconds_left(self, now):
        """Returns `None` when nobody knows."""
        left = math.inf
        if self.target:
            epochs = self.epochs - self._epoch
            left = epochs * self.target - self.seen
        if self._ratio is not None:
            left = min(left, self._ratio.updates_left())
        if self._updates < 2 or math.isinf(left):
            return None
        return left * (now - self._started) / (self._updates - 1)


def clock(seconds):
    """Returns seconds as hours:minutes:seconds, and `None` as "?"."""
    if seconds is None:
        return "?"
    seconds = max(0, int(seconds))
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
