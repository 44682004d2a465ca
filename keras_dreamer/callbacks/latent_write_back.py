"""Fresh latents go back into the replay."""

import keras

from keras_dreamer import backend


class LatentWriteBack(keras.callbacks.Callback):
    """Replaces the stored latents of a batch with the ones just computed.

    A window that starts mid-episode begins from the latents stored with the
    row before it. The world model changes while the rows lie in the replay,
    so after every update the new latents replace the old ones.

    Source: DreamerV3 (https://arxiv.org/abs/2301.04104v2), p. 18; item 5.9.

    `fit` hands it the dataset. A batch without `step_id` is not from a replay
    and is left alone.
    """

    def __init__(self) -> None:
        super().__init__()
        self.replay = None

    def set_dataset(self, dataset):
        """Takes the replay from the dataset of `fit`."""
        self.replay = dataset.replay

    def on_train_batch_end(self, batch, logs=None):
        exchange = self._model.exchange
        if self.replay is None or exchange.step_id is None:
            return
        if exchange.skipped:
            return  # The latents may be as bad as the update was.
        latents = {
            name: backend.as_numpy(value)
            for name, value in exchange.latents.items()
        }
        context = self._model.config.replay_context
        self.replay.update(exchange.step_id[:, context:], latents)
