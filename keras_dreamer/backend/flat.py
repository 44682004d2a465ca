"""Loops that are none: all entries of an axis at once."""

import keras
from keras import ops


def accumulate(function, tensors, inputs):
    """Sums a loss over the entries of the first axis of `inputs`.

    Args:
        function: function `(tensors, rows) -> (loss, outputs)` of the weights
            and a nest of `(N, ...)` tensors; a scalar and a nest of
            `(N, ...)` tensors. `loss` is a sum over rows.
        tensors: nest of weights, which gradients go to.
        inputs: nest of `(L, N, ...)` tensors, constants.

    Returns:
        The sum of the losses and the nest of `(L, N, ...)` outputs.
    """
    shape = keras.tree.flatten(inputs)[0].shape[:2]
    rows = keras.tree.map_structure(
        lambda x: ops.reshape(x, (-1, *x.shape[2:])), inputs
    )
    loss, outputs = function(tensors, rows)
    return loss, keras.tree.map_structure(
        lambda x: ops.reshape(x, (*shape, *x.shape[1:])), outputs
    )


class LaPropUpdate:
    """Update step of `LaProp`: Keras's own, variable by variable."""
