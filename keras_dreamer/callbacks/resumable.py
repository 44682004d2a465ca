"""Callbacks whose state belongs to the run."""

from typing import Any


class Resumable:
    """Mixin of a Keras callback that goes on where it stopped.

    `Checkpoint` saves its state and `keras_dreamer.resume` restores it.

    Example:

    >>> class Best(keras_dreamer.callbacks.Resumable, keras.callbacks.Callback):
    ...     best = 0.0
    ...
    ...     def get_state(self):
    ...         return {"best": self.best}
    ...
    ...     def set_state(self, state):
    ...         self.best = state["best"]
    """

    def get_state(self) -> dict[str, Any]:
        """Returns the state, a dict for JSON."""
        raise NotImplementedError

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes the state, before `fit` begins.

        Args:
            state: dict that `get_state` returned.
        """
        raise NotImplementedError
