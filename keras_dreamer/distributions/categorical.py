"""Categorical distributions of latents and discrete actions."""

import numpy as np
from keras import ops
from numpy.typing import ArrayLike

from keras_dreamer.backend import on_cpu
from keras_dreamer.distributions.normal import sum_event
from keras_dreamer.tensor import Tensor

_NEVER = -1e9  # Logit of a class that a variable does not have.


class Categorical:
    """Independent categoricals mixed with a uniform distribution.

        probs = (1 - unimix) * softmax(logits) + unimix / classes

    Sampling, log-probabilities, entropy and divergence all use the mixed
    probabilities (item 1.8). Variables may have different numbers of
    classes: the surplus classes get no probability.

    Source: DreamerV3 (https://arxiv.org/abs/2301.04104v2), p. 18, and
    `embodied/jax/outs.py` of danijar/dreamerv3 at e3f0224.

    Args:
        logits: `(..., *event, C)` tensor, computed on in float32.
        unimix: float in `[0, 1]`. Share of the uniform distribution.
        event_ndim: int. Number of event axes before the classes, summed
            over.
        sizes: `None` if every variable has C classes, else a nested
            sequence of ints of the event's shape.
    """

    def __init__(
        self,
        logits: Tensor,
        unimix: float = 0.0,
        event_ndim: int = 0,
        sizes: ArrayLike | None = None,
    ) -> None:
        logits = ops.cast(logits, "float32")
        classes = logits.shape[-1]
        self.classes = classes
        self.event_ndim = event_ndim
        self.unimix = unimix
        self.last = classes - 1
        # The uniform's part of a class, and that of each one if some lack.
        self.share = self.shares = np.float32(unimix / classes)
        if sizes is not None and np.any(np.asarray(sizes) != classes):
            sizes = np.asarray(sizes)[..., None]
            exists = np.arange(classes) < sizes
            logits = ops.where(exists, logits, np.float32(_NEVER))
            self.last = ops.convert_to_tensor(sizes[..., 0] - 1, "int32")
            self.share = ops.convert_to_tensor(unimix / sizes, "float32")
            self.shares = ops.where(exists, self.share, np.float32(0))
        self.logits = logits

    # A sample needs neither of these. They are not kept for the next call: a
    # tensor made inside of a compiled loop means nothing outside of it.

    @property
    def probs(self) -> Tensor:
        """Probabilities, `(..., *event, C)` float32."""
        return self._mixed()[0]

    @property
    def log_probs(self) -> Tensor:
        """Logarithms of `probs`, `(..., *event, C)` float32."""
        return self._mixed()[1]

    def sample(self, noise: Tensor | None) -> Tensor:
        """Samples class indices by inverting the cumulative distribution.

        Args:
            noise: `(..., *event)` tensor, uniform in `[0, 1)`, or `None`
                for the most probable class (a choice made while tracing,
                so that it costs nothing when it is not used).

        Returns:
            `(..., *event)` int32 tensor. No gradient flows through.
        """
        if noise is None:
            return self.mode()
        # Compared times the sum that a softmax would divide by, and without
        # the uniform share: less arithmetic for each class.
        logits = ops.stop_gradient(self.logits)
        peak = ops.max(logits, axis=-1, keepdims=True)
        cumulative = _cumulative(ops.exp(logits - peak))
        uniform = self.share * ops.arange(1, self.classes, dtype="float32")
        noise = (noise[..., None] - uniform) * cumulative[..., -1:]
        below = noise >= (1.0 - self.unimix) * cumulative[..., :-1]
        below = ops.sum(ops.cast(below, "int32"), axis=-1)
        return ops.minimum(below, self.last)

    def mode(self) -> Tensor:
        """Returns the most probable classes, `(..., *event)` int32."""
        return ops.cast(ops.argmax(self.probs, axis=-1), "int32")

    def straight_through(self, index: Tensor) -> Tensor:
        """One-hot encodes samples; gradients pass on to `probs`.

        Args:
            index: `(..., *event)` int tensor.

        Returns:
            `(..., *event, C)` float32 tensor whose value is exactly one-hot.
        """
        probs = self.probs
        return self.one_hot(index) + (probs - ops.stop_gradient(probs))

    def one_hot(self, index: Tensor) -> Tensor:
        """One-hot encodes samples, `(..., *event, C)` float32."""
        return ops.one_hot(index, self.classes, dtype="float32")

    def log_prob(self, index: Tensor) -> Tensor:
        """Returns the log-probability of `index`, `(...)`, in nats."""
        log_prob = ops.sum(self.one_hot(index) * self.log_probs, axis=-1)
        return sum_event(log_prob, self.event_ndim)

    def entropy(self) -> Tensor:
        """Returns the entropy, `(...)`, in nats."""
        probs, log_probs = self._mixed()
        entropy = -ops.sum(probs * log_probs, axis=-1)
        return sum_event(entropy, self.event_ndim)

    def kl(self, other: "Categorical") -> Tensor:
        """Returns the divergence KL(self || other), `(...)`, in nats."""
        probs, log_probs = self._mixed()
        kl = ops.sum(probs * (log_probs - other.log_probs), axis=-1)
        return sum_event(kl, self.event_ndim)

    def _mixed(self):
        """Returns `probs` and `log_probs`."""
        if not self.unimix:
            log_probs = ops.log_softmax(self.logits, axis=-1)
            return ops.exp(log_probs), log_probs
        probs = (1.0 - self.unimix) * _softmax(self.logits) + self.shares
        return probs, ops.log(ops.maximum(probs, 1e-30))


def _softmax(logits):
    if logits.shape[-1] == 1:  # Keras warns of a softmax over one class.
        return ops.exp(ops.log_softmax(logits, axis=-1))
    return ops.softmax(logits, axis=-1)


def _cumulative(x):
    """Sums up to each entry of the last axis.

    On CPUs a product with a triangular matrix, twice as fast as `cumsum`.
    Accelerators may compute products in less than float32.
    """
    if not on_cpu():
        return ops.cumsum(x, axis=-1)
    size = x.shape[-1]
    return ops.matmul(x, np.triu(np.ones((size, size), "float32")))
