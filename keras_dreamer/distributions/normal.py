"""Independent normal distributions of continuous actions."""

import math

from keras import ops

from keras_dreamer.tensor import Tensor


class Normal:
    """Independent normals over the last `event_ndim` axes.

    Not squashed: samples may leave the range of the mean, and the
    log-probability is that of the plain normal (item 3.13).

    Source: DreamerV3 (https://arxiv.org/abs/2301.04104v2), and
    `embodied/jax/outs.py` of danijar/dreamerv3 at e3f0224.

    Args:
        mean: `(..., *event)` float32 tensor.
        std: `(..., *event)` float32 tensor.
        event_ndim: int. Number of event axes, summed over.
    """

    def __init__(self, mean: Tensor, std: Tensor, event_ndim: int) -> None:
        self.mean = mean
        self.std = std
        self.event_ndim = event_ndim

    def sample(self, noise: Tensor) -> Tensor:
        """Returns `mean + noise * std`, `(..., *event)`."""
        return self.mean + noise * self.std

    def mode(self) -> Tensor:
        """Returns the mean, `(..., *event)`."""
        return self.mean

    def log_prob(self, value: Tensor) -> Tensor:
        """Returns the log-density of `value`, `(...)`, in nats."""
        scaled = (value - self.mean) / self.std
        log_prob = (
            -0.5 * ops.square(scaled)
            - ops.log(self.std)
            - 0.5 * math.log(2 * math.pi)
        )
        return sum_event(log_prob, self.event_ndim)

    def entropy(self) -> Tensor:
        """Returns the differential entropy, `(...)`, in nats."""
        entropy = 0.5 * math.log(2 * math.pi * math.e) + ops.log(self.std)
        return sum_event(entropy, self.event_ndim)


def sum_event(x, event_ndim):
    """Sums over the last `event_ndim` axes, which may be none."""
    if not event_ndim:
        return x
    return ops.sum(x, axis=tuple(range(-event_ndim, 0)))
