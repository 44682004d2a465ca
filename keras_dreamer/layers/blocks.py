"""Block-diagonal products, and what is computed between two of them."""

import math

from keras import ops

from keras_dreamer.backend import blocks_apart
from keras_dreamer.backend import matmul


class Blocks:
    """Cuts features into blocks that are multiplied by kernels of their own.

    Tensors that are cut are lists. For compilers on CPUs, and many rows, each
    block is an `(N, O)` tensor, which stays in the cache. Otherwise the list
    holds a single `(count, N, O)` tensor, since fewer operations are to be
    launched.

    Args:
        count: int. Number of blocks.
        rows: int. N, number of rows that are computed at once. Anything else,
            as the symbol in an exported program, stands for few.
    """

    def __init__(self, count, rows):
        self.count = count
        many = isinstance(rows, int) and rows >= 128
        self.apart = many and blocks_apart()

    def cut(self, x):
        """Cuts `(N, count * O)` features."""
        width = x.shape[-1] // self.count
        if self.apart:
            return _slices(x, width)
        x = ops.reshape(x, (-1, self.count, width))
        return [ops.swapaxes(x, 0, 1)]

    def join(self, parts):
        """Puts together again what `cut` cut."""
        if self.apart:
            return ops.concatenate(parts, axis=-1)
        x = ops.swapaxes(parts[0], 0, 1)
        return ops.reshape(x, (-1, self.count * x.shape[-1]))

    def cut_vector(self, x):
        """Cuts `(count * O,)` weights, which apply to all rows."""
        width = x.shape[-1] // self.count
        if self.apart:
            return _slices(x, width)
        return [ops.reshape(x, (self.count, 1, width))]

    def cut_kernel(self, kernel):
        """Cuts a `(count, I, O)` kernel for `matmul`."""
        if self.apart:
            return [kernel[block] for block in range(self.count)]
        return [kernel]

    def matmul(self, parts, kernels):
        """Returns `x[g] @ kernel[g]` for every block g (item 1.2)."""
        return list(map(matmul, parts, kernels))

    def norm_silu(self, scale, parts, epsilon=1e-4):
        """Returns `functional.norm_silu` of all blocks together.

        Args:
            scale: the norm's scale, from `cut_vector`.
            parts: features, cut.
            epsilon: float.
        """
        axes = -1 if self.apart else (0, -1)
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
    rows = ops.reshape(x, (-1, x.shape[-1]))
    blocks = Blocks(tensors["kernel"].shape[0], rows.shape[0])
    kernels = blocks.cut_kernel(tensors["kernel"])
    y = blocks.join(blocks.matmul(blocks.cut(rows), kernels)) + tensors["bias"]
    return ops.reshape(y, (*ops.shape(x)[:-1], y.shape[-1]))


def _slices(x, width):
    starts = range(0, x.shape[-1], width)
    return [x[..., start : start + width] for start in starts]
