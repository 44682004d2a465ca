"""Whether an update can be applied, and the sizes of its gradients."""

from keras import ops


def measure(total, gradients, parts):
    """Tells whether loss and gradients are finite, and how large these are.

    Norms of gradients count, which must not overflow either. The optimizer
    needs the squares of each tensor anyway, so that a compiler computes them
    once.

    Args:
        total: scalar, the loss.
        gradients: list of tensors; `None` stands for no gradient.
        parts: pairs of a part's name and the indices of its gradients.

    Returns:
        Bool scalar tensor, and a dict of float32 scalars: the norms before any
        clipping, `grad_norm` of all gradients and `grad_norm/<part>`.
    """
    squares = [
        0.0 if x is None else ops.sum(ops.square(ops.cast(x, "float32")))
        for x in gradients
    ]
    sums = {"grad_norm": sum(squares)}
    for name, indices in parts:
        sums[f"grad_norm/{name}"] = sum(squares[i] for i in indices)
    norms = {name: ops.sqrt(square) for name, square in sums.items()}
    # Of the norm, not of its square: XLA would add all squares up again in the
    # kernel of each weight. Without that JAX compiles half the instructions.
    finite = ops.isfinite(ops.cast(total, "float32") + norms["grad_norm"])
    return finite, norms
