"""World model part of an update: observe, reconstruct, predict."""

import dataclasses

from keras import ops

from keras_dreamer.layers.inputs import concat_inputs
from keras_dreamer.losses.world_model import binary_cross_entropy
from keras_dreamer.losses.world_model import kl_losses


@dataclasses.dataclass(frozen=True)
class Posterior:
    """States of the trained steps, `(B, T, ...)`, with gradients."""

    deter: object
    stoch: object

    def features(self):
        """Returns `(B, T, D + S * C)`, what all heads take."""
        return ops.concatenate([self.deter, self.stoch], axis=-1)


def observe(nets, tensors, batch, noise, config):
    """World model part of the loss (Algorithm E).

    Returns:
        `Posterior`, dict of `(B, T)` loss terms, dict of metrics.
    """
    posterior, logits = infer(nets, tensors, batch, noise["posterior"])
    prior_logits = nets.dyn.prior(tensors["dyn"], posterior.deter)
    (dyn, rep), (post, prior) = kl_losses(
        logits, prior_logits, nets.dyn.latents, config.free_nats
    )
    terms = _head_losses(nets, tensors, posterior, batch, config)
    metrics = {
        "dyn_ent": ops.mean(prior.entropy()),
        "rep_ent": ops.mean(post.entropy()),
    }
    return posterior, {**terms, "dyn": dyn, "rep": rep}, metrics


def infer(nets, tensors, batch, noise):
    """Filters the observations of a prepared batch.

    Args:
        nets: `Networks`.
        tensors: their weights.
        batch: what `prepare_batch` returns.
        noise: `(B, T, S)` uniform in `[0, 1)`, or `None` for the modes.

    Returns:
        `Posterior` and the `(B, T, S, C)` logits of its latents.
    """
    tokens = nets.enc.apply(tensors["enc"], batch["observation"])
    action = concat_inputs(
        nets.pol.leaves, batch["previous_action"], tokens.dtype
    )
    deter, stoch, logits = nets.dyn.observe(
        tensors["dyn"],
        batch["carry"],
        tokens,
        action,
        batch["is_first"],
        noise,
    )
    return Posterior(deter, stoch), logits


def decode(nets, tensors, posterior):
    """Returns what the decoder makes of states, a dict.

    The decoder takes the latents first, all other heads last (item 2.11).
    """
    features = ops.concatenate([posterior.stoch, posterior.deter], axis=-1)
    return nets.dec.apply(tensors["dec"], features)


def _head_losses(nets, tensors, posterior, batch, config):
    decoded = decode(nets, tensors, posterior)
    recs = nets.dec.losses_of(decoded, batch["observation"])
    features = posterior.features()
    for_reward = features
    if not config.reward_grad:
        for_reward = ops.stop_gradient(features)
    reward = nets.rew.distribution(nets.rew.apply(tensors["rew"], for_reward))
    goes_on = 1.0 - batch["is_terminal"]
    if config.contdisc:
        goes_on = goes_on * config.discount
    con = nets.con.apply(tensors["con"], features)
    return {
        **{f"rec/{key}": loss for key, loss in recs.items()},
        "rew": reward.loss(batch["reward"]),
        "con": binary_cross_entropy(con, goes_on),
    }
