"""Block-diagonal products, and what is computed between two of them."""

import math

from keras import ops

from keras_dreamer.backend import blocks_apart
from keras_dreamer.backend import matmul


class Blocks:
    """Cuts features into blocks that are multiplied by kernels of their own.

    Tensors that are cut are lists. For compilers on CPUs, and many rows, each
    block is a `(..., O)` tensor: they lay a batched product out as
    [count, O, ...], which costs twice the time. Otherwise the list holds a
    single `(..., count, O)` tensor, since fewer operations are to be launched.

    Args:
        count: int. Number of blocks.
        rows: int. Number of rows that are computed at once. Anything else,
            as `None`, stands for many.
    """

    def __init__(self, count, rows=None):
        self.count = count
        self.each = blocks_apart()
        # Exported programs have a symbol for their number of rows.
        few = isinstance(rows, int) and rows < 128
        self.apart = self.each and not few

    def cut(self, x):
        """Cuts `(..., count * O)` features."""
        width = x.shape[-1] // self.count
        if self.apart:
            starts = range(0, x.shape[-1], width)
            return [x[..., start : start + width] for start in starts]
        return [ops.reshape(x, (*ops.shape(x)[:-1], self.count, width))]

    def join(self, parts):
        """Puts together again what `cut` cut."""
        if self.apart:
            return ops.concatenate(parts, axis=-1)
        (x,) = parts
        return ops.reshape(x, (*ops.shape(x)[:-2], self.count * x.shape[-1]))

    def cut_kernel(self, kernel):
        """Cuts a `(count, I, O)` kernel for `matmul`."""
        if self.each:
            return [kernel[block] for block in range(self.count)]
        return [kernel]

    def matmul(self, parts, kernels):
        """Returns `x[g] @ kernel[g]` for every block g (item 1.2)."""
        if self.apart:
            return list(map(matmul, parts, kernels))
        if self.each:
            (x,) = parts
            products = [
                matmul(x[..., block, :], kernel)
                for block, kernel in enumerate(kernels)
            ]
            return [ops.stack(products, axis=-2)]
        return [ops.einsum("...gi,gio->...go", *parts, *kernels)]

    def norm_silu(self, scale, parts, epsilon=1e-4):
        """Returns `functional.norm_silu` of all blocks together.

        Args:
            scale: the norm's scale, cut.
            parts: features, cut.
            epsilon: float.
        """
        axes = -1 if self.apart else (-2, -1)
        width = sum(math.prod(own.shape) for own in scale)
        parts32 = [ops.cast(part, "float32") for part in parts]
        squares = sum(
            ops.sum(ops.square(part), axis=axes, keepdims=True)
            for part in parts32
        )
        factor = ops.rsqrt(squares / width + epsilon)
        return [
            ops.silu(ops.cast(part32 * factor * own, part.dtype))
            for part32, own, part in zip(parts32, scale, parts, strict=True)
        ]


def block_dense(tensors, x):
    """Returns `x[g] @ kernel[g] + bias[g]` for every block g (item 1.2)."""
    blocks = Blocks(tensors["kernel"].shape[0])
    kernels = blocks.cut_kernel(tensors["kernel"])
    return blocks.join(blocks.matmul(blocks.cut(x), kernels)) + tensors["bias"]
