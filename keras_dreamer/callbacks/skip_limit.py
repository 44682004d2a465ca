"""Ends runs in which no update can be applied any more."""

import math

import keras


class SkipLimit(keras.callbacks.Callback):
    """Stops training when too many updates in a row were not finite.

    One bad batch is skipped and forgotten. When every batch is bad, the data
    or the weights are, and to go on would only hide it. `fit` adds it.

    Args:
        limit: int. Number of skipped updates in a row that ends training.
    """

    def __init__(self, limit=20):
        super().__init__()
        self.limit = limit
        self.in_a_row = 0

    def on_train_begin(self, logs=None):
        self.in_a_row = 0

    def on_train_batch_end(self, batch, logs=None):
        # `self.model` would copy the whole state out of a running `fit`.
        skipped = self._model.exchange.skipped
        self.in_a_row = self.in_a_row + 1 if skipped else 0
        if self.in_a_row >= self.limit:
            self._model.stop_training = True

    def check(self):
        """Raises an error if the limit was reached."""
        if self.in_a_row < self.limit:
            return
        scalars = self._model.exchange.scalars
        bad = [k for k, v in scalars.items() if not math.isfinite(v)]
        raise ValueError(
            "Loss and gradients of an update must be finite. Received: "
            f"{self.in_a_row} updates in a row that were not, and were "
            f"skipped. Not finite in the last one: {bad}. "
            "The weights are those of the last good update. Look for huge "
            "numbers in the observations and rewards of the replay "
            "(`loss/rec/<key>` and `loss/rew` in the logs), or lower the "
            "learning rate."
        )
