"""Losses of the world model: reconstruction, continue, divergence."""

from collections.abc import Callable

from keras import ops

from keras_dreamer.distributions.categorical import Categorical
from keras_dreamer.distributions.normal import sum_event
from keras_dreamer.symlog import symlog
from keras_dreamer.tensor import Tensor


def symlog_mse(
    prediction: Tensor,
    target: Tensor,
    event_ndim: int,
    available: Tensor | None = None,
) -> Tensor:
    """Squared error in symlog space, summed over the features of a key.

        sum((prediction - symlog(target)) ** 2)

    Source: DreamerV3 (https://arxiv.org/abs/2301.04104v2), Eq. 8, without
    its factor 1/2 as in both published codes (items 1.11 and 2.11).

    Args:
        prediction: `(..., *event)` tensor in symlog space.
        target: `(..., *event)` float32 tensor in raw space.
        event_ndim: int. Number of feature axes.
        available: `None` or `(...)` bool tensor. Samples that lack the key
            cost nothing and pass on no gradient.

    Returns:
        `(...)` float32 tensor.
    """
    target = ops.stop_gradient(symlog(_present(target, available, event_ndim)))
    error = ops.square(ops.cast(prediction, "float32") - target)
    return _masked(sum_event(error, event_ndim), available)


def categorical_nll(
    distribution: Categorical, target: Tensor, available: Tensor | None = None
) -> Tensor:
    """Negative log-likelihood of class indices, summed over the variables.

    Source: `embodied/jax/outs.py` of danijar/dreamerv3 at e3f0224; item 2.11.

    Args:
        distribution: `Categorical` of the key.
        target: `(..., *event)` int tensor.
        available: `None` or `(...)` bool tensor, as in `symlog_mse`.

    Returns:
        `(...)` float32 tensor, in nats.
    """
    target = _present(target, available, distribution.event_ndim)
    return _masked(-distribution.log_prob(target), available)


def binary_cross_entropy(logit: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy of a Bernoulli variable with a soft label.

        -(target * log sigmoid(logit) + (1 - target) * log sigmoid(-logit))

    Source: `embodied/jax/outs.py` of danijar/dreamerv3 at e3f0224; item 1.10.

    Args:
        logit: `(...)` tensor, computed on in float32.
        target: `(...)` float32 tensor in `[0, 1]`.

    Returns:
        `(...)` float32 tensor, in nats.
    """
    logit = ops.cast(logit, "float32")
    return ops.softplus(logit) - target * logit


def kl_losses(
    posterior: Tensor,
    prior: Tensor,
    make: Callable[[Tensor], Categorical],
    free_nats: float,
) -> tuple[tuple[Tensor, Tensor], tuple[Categorical, Categorical]]:
    """Dynamics and representation loss with free bits.

        dyn = max(KL(sg(posterior) || prior), free_nats)
        rep = max(KL(posterior || sg(prior)), free_nats)

    The divergence is summed over the latents before it is clipped.

    Source: DreamerV3 (https://arxiv.org/abs/2301.04104v2), Eq. 3; item 2.14.

    Args:
        posterior: `(..., S, C)` raw logits.
        prior: `(..., S, C)` raw logits.
        make: function from logits to a `Categorical` over the S latents.
        free_nats: float. Divergence in nats below which nothing is learned.

    Returns:
        Two `(...)` float32 tensors `(dyn, rep)`, in nats, and the two
        distributions `(posterior, prior)`.
    """
    free_nats = ops.convert_to_tensor(free_nats, "float32")
    post, pri = make(posterior), make(prior)
    fixed_post = make(ops.stop_gradient(posterior))
    fixed_prior = make(ops.stop_gradient(prior))
    dyn = ops.maximum(fixed_post.kl(pri), free_nats)
    rep = ops.maximum(post.kl(fixed_prior), free_nats)
    return (dyn, rep), (post, pri)


def _present(target, available, event_ndim):
    """Replaces the targets of samples that lack the key by zeros."""
    if available is None:
        return target
    mask = available[(..., *(None,) * event_ndim)]
    return ops.where(mask, target, ops.zeros_like(target))


def _masked(loss, available):
    if available is None:
        return loss
    return loss * ops.cast(available, "float32")
