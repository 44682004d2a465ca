"""Two-hot regression on exponentially spaced bins, for rewards and values."""

import numpy as np
from keras import ops

from keras_dreamer.tensor import Tensor


def symexp_bins(count: int = 255) -> np.ndarray:
    """Returns bins spaced evenly in symlog space, exactly antisymmetric.

        bins = symexp(linspace(-20, 20, count)), mirrored at the middle bin 0

    Source: DreamerV3 (https://arxiv.org/abs/2301.04104v2), Eq. 10; item 1.9.

    Args:
        count: int. Number of bins, odd.

    Returns:
        `(count,)` float32 NumPy array.
    """
    if count % 2 == 0:
        raise ValueError(
            "`count` must be odd, so that one bin is exactly 0. Received: "
            f"count={count}. Use count={count + 1}."
        )
    half = np.linspace(-20, 0, count // 2 + 1, dtype="float32")
    half = (np.sign(half) * np.expm1(np.abs(half))).astype("float32")
    return np.concatenate([half, -half[:-1][::-1]])


class TwoHot:
    """Distribution over bins, trained by regression on real numbers.

    Source: DreamerV3 (https://arxiv.org/abs/2301.04104v2), Eq. 10 to 12,
    Algorithm D; item 1.9. The targets are interpolated between their two
    neighbouring bins in raw space.

    Args:
        logits: `(..., bins)` tensor, computed on in float32.
        bins: `(bins,)` NumPy array as `symexp_bins` returns it.

    Example:

    >>> logits = keras.ops.zeros((2, 255))
    >>> bins = keras_dreamer.losses.symexp_bins(255)
    >>> value = keras_dreamer.losses.TwoHot(logits, bins)
    >>> keras.ops.convert_to_numpy(value.mean()).tolist()
    [0.0, 0.0]
    >>> tuple(value.loss(keras.ops.ones((2,))).shape)
    (2,)
    """

    def __init__(self, logits: Tensor, bins: np.ndarray) -> None:
        self.logits = ops.cast(logits, "float32")
        self.bins = ops.convert_to_tensor(bins, "float32")
        # Shared by both losses on the same logits.
        self.log_total = ops.logsumexp(self.logits, axis=-1)

    def mean(self) -> Tensor:
        """Returns the expected value, `(...)`, exactly 0 for equal logits.

        Mirrored bins are subtracted before they are multiplied and summed:
        summing both halves and adding them is 0 on paper only, since
        compilers contract products and sums into fused operations.
        """
        middle = self.bins.shape[0] // 2
        peak = ops.stop_gradient(ops.max(self.logits, axis=-1, keepdims=True))
        weights = ops.exp(self.logits - peak)
        low = ops.flip(weights[..., :middle], axis=-1)
        pairs = weights[..., middle + 1 :] - low
        mean = ops.matmul(pairs, self.bins[middle + 1 :])
        return mean / ops.sum(weights, axis=-1)

    def loss(self, target: Tensor) -> Tensor:
        """Returns the cross-entropy with the two-hot encoded target.

        Args:
            target: `(...)` float32 tensor in raw space. Beyond the bins it
                counts as the outermost one.

        Returns:
            `(...)` float32 tensor, in nats.
        """
        below, above, weight = _neighbours(target, self.bins)
        picked = _take(self.logits, below) * (1.0 - weight)
        picked = picked + _take(self.logits, above) * weight
        return self.log_total - picked


def _neighbours(target, bins):
    """Returns the bins around the targets and the weight of the upper one."""
    below = ops.searchsorted(bins, ops.reshape(target, (-1,)), side="right")
    below = ops.reshape(ops.cast(below, "int32") - 1, ops.shape(target))
    above = ops.clip(below + 1, 0, bins.shape[0] - 1)
    below = ops.clip(below, 0, bins.shape[0] - 1)
    lower, upper = ops.take(bins, below), ops.take(bins, above)
    gap = ops.maximum(upper - lower, np.float32(1e-30))
    return below, above, ops.clip((target - lower) / gap, 0.0, 1.0)


def _take(logits, index):
    return ops.take_along_axis(logits, index[..., None], axis=-1)[..., 0]
