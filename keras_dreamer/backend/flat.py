"""What backends share, unless they have something better of their own."""

import math

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
    length, count = keras.tree.flatten(inputs)[0].shape[:2]
    # The rows of one device stay together, else they would go to all devices.
    shards = _shards(count)
    own = count // shards
    rows = _regroup(inputs, (length, shards, own), (length * count,))
    loss, outputs = function(tensors, rows)
    return loss, _regroup(outputs, (shards, length, own), (length, count))


def _shards(count):
    """Returns over how many devices `count` rows are spread."""
    distribution = keras.distribution.distribution()
    if distribution is None:
        return 1
    return math.gcd(count, distribution.device_mesh.devices.size)


def _regroup(nest, split, merged):
    """Splits the first axes into three, swaps two of them and merges."""
    axes = 3 - len(merged)

    def regroup(x):
        rest = x.shape[axes:]
        x = ops.swapaxes(ops.reshape(x, (*split, *rest)), 0, 1)
        return ops.reshape(x, (*merged, *rest))

    return keras.tree.map_structure(regroup, nest)


def scan_layers(scan, step, layers, carry, inputs, length):
    """`scan` with layers whose weights have gradients.

    Args:
        scan: the backend's `scan`; callers have it bound.
        step: function `(layers, carry, inputs_t) -> (carry, outputs_t)` that
            multiplies the carry's rows by each kernel once, with `matmul`.
        layers: dict of dicts whose `kernel` is a tensor or a list of them.
        carry: nest of `(N, ...)` tensors.
        inputs: as in `scan`.
        length: int.

    Returns:
        As `scan`.
    """
    return scan(lambda *args: step(layers, *args), carry, inputs, length)


def matmul(x, kernel):
    """Returns `x @ kernel`, also for the kernels of `scan_layers`.

    Args:
        x: `(..., I)` tensor, or `(G, N, I)`.
        kernel: `(I, O)` tensor, or `(G, I, O)`.
    """
    return ops.matmul(x, kernel)


def outer(a, b):
    """Returns the `(I, O)` sum of the outer products of rows.

    Args:
        a: `(N, I)` tensor.
        b: `(N, O)` tensor.
    """
    return ops.matmul(ops.transpose(a), b)


class LaPropUpdate:
    """Update step of `LaProp`: Keras's own, variable by variable."""
