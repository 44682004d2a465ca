"""Progress bar that shows the few numbers that matter."""

import keras

SHOWN = ("loss", "episode/return", "env_steps", "updates/s")


class Progress(keras.callbacks.ProgbarLogger):
    """Keras's progress bar, limited to the loss, return, steps and speed.

    The other logs reach History and all other callbacks as usual.
    """

    def on_train_batch_end(self, batch, logs=None):
        super().on_train_batch_end(batch, _few(logs))

    def on_epoch_end(self, epoch, logs=None):
        super().on_epoch_end(epoch, _few(logs))


def _few(logs):
    logs = logs or {}
    return {name: logs[name] for name in SHOWN if name in logs}
