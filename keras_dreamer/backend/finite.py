"""Whether an update can be applied."""

from keras import ops


def all_finite(total, gradients):
    """Tells whether the loss and all gradients are finite.

    Norms of gradients count, which must not overflow either. The optimizer
    needs them anyway, so that a compiler computes them once.

    Args:
        total: scalar, the loss.
        gradients: list of tensors; `None` stands for no gradient.

    Returns:
        Bool scalar tensor.
    """
    squares = [
        ops.sum(ops.square(ops.cast(gradient, "float32")))
        for gradient in gradients
        if gradient is not None
    ]
    return ops.isfinite(sum(squares, ops.cast(total, "float32")))
