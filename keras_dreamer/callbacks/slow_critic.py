"""The slow critic, an exponential average of the critic."""

import keras


class SlowCritic(keras.callbacks.Callback):
    """Moves the slow critic towards the critic after every update.

    It stays as it is after an update that was skipped.

        slow <- rate * critic + (1 - rate) * slow

    The critic is regularised towards it; it gives no targets.

    Source: DreamerV3 (https://arxiv.org/abs/2301.04104v2), p. 6; item 3.18.

    Args:
        rate: float in `(0, 1]`. Share of the critic in each step.
    """

    def __init__(self, rate: float = 0.02) -> None:
        super().__init__()
        if not 0.0 < rate <= 1.0:
            raise ValueError(
                "`rate` must lie in (0, 1]: 1 copies the critic. Received: "
                f"rate={rate}. The recipe uses 0.02."
            )
        self.rate = rate

    def on_train_batch_end(self, batch, logs=None):
        # `self.model` would copy the whole state out of a running `fit`.
        if not self._model.exchange.skipped:
            self._model.update_slow_critic(self.rate)
