"""Sizes of gradients, and whether an update can be applied."""

from keras import ops


def gradient_norms(gradients, parts):
    """Returns the norm of all gradients, and of those of each part.

    Before any clipping. The optimizer needs the squares of each tensor anyway,
    so that a compiler computes them once.

    Args:
        gradients: list of tensors; `None` stands for no gradient.
        parts: pairs of a part's name and the indices of its gradients.

    Returns:
        Dict of float32 scalars, `grad_norm` and `grad_norm/<part>`.
    """
    squares = [
        0.0 if x is None else ops.sum(ops.square(ops.cast(x, "float32")))
        for x in gradients
    ]
    sums = {"grad_norm": sum(squares)}
    for name, indices in parts:
        sums[f"grad_norm/{name}"] = sum(squares[i] for i in indices)
    return {name: ops.sqrt(total) for name, total in sums.items()}


def all_finite(total, norms):
    """Tells whether the loss and all gradients are finite.

    Norms of gradients count, which must not overflow either.

    Args:
        total: scalar, the loss.
        norms: what `gradient_norms` returned.

    Returns:
        Bool scalar tensor.
    """
    return ops.isfinite(ops.cast(total, "float32") + norms["grad_norm"])
