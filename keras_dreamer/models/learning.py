"""The parts of one update: observe, imagine, actor-critic, replay value."""

import dataclasses

from keras import ops

from keras_dreamer.layers.inputs import concat_inputs
from keras_dreamer.losses import actor_critic
from keras_dreamer.losses.returns import lambda_returns
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


@dataclasses.dataclass(frozen=True)
class Dream:
    """Imagined trajectories without gradients, time first.

    `features` `(H + 1, N, D + S * C)` begin with the start state, `action`
    holds `(H, N, ...)` for each key.
    """

    features: object
    action: dict


def observe(nets, tensors, batch, noise, config):
    """World model part of the loss (Algorithm E).

    Returns:
        `Posterior`, dict of `(B, T)` loss terms, dict of metrics.
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
        noise["posterior"],
    )
    posterior = Posterior(deter, stoch)
    prior_logits = nets.dyn.prior(tensors["dyn"], deter)
    (dyn, rep), (post, prior) = kl_losses(
        logits, prior_logits, nets.dyn.latents, config.free_nats
    )
    terms = _head_losses(nets, tensors, posterior, batch, config)
    metrics = {
        "dyn_ent": ops.mean(prior.entropy()),
        "rep_ent": ops.mean(post.entropy()),
    }
    return posterior, {**terms, "dyn": dyn, "rep": rep}, metrics


def _head_losses(nets, tensors, posterior, batch, config):
    # The decoder takes the latents first, all other heads last (item 2.11).
    decoded = nets.dec.apply(
        tensors["dec"],
        ops.concatenate([posterior.stoch, posterior.deter], axis=-1),
    )
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


def imagine(nets, fixed, posterior, noise, config):
    """Imagines H steps from every posterior state (item 3.1 to 3.3).

    Args:
        nets: `Networks`.
        fixed: weights with stopped gradients: none flow through imagination.
        posterior: `Posterior`.
        noise: nest of `sample_noise`.
        config: `Config`.

    Returns:
        `Dream` with N = B * T trajectories, batch major.
    """

    def policy(deter, stoch, noise):
        features = ops.concatenate([deter, stoch], axis=-1)
        outputs = nets.pol.apply(fixed["pol"], features)
        action = {
            key: distribution.sample(noise[key])
            for key, distribution in nets.pol.distributions(outputs).items()
        }
        return action, concat_inputs(nets.pol.leaves, action, deter.dtype)

    start = [
        ops.reshape(ops.stop_gradient(x), (-1, x.shape[-1]))
        for x in (posterior.deter, posterior.stoch)
    ]
    deter, stoch, action = nets.dyn.imagine(
        fixed["dyn"],
        tuple(start),
        policy,
        (noise["action"], noise["prior"]),
        config.imag_length,
    )
    features = ops.concatenate([deter, stoch], axis=-1)
    first = ops.concatenate(start, axis=-1)[None]
    features = ops.concatenate([first, features], axis=0)
    return Dream(
        ops.stop_gradient(features),
        {key: ops.stop_gradient(value) for key, value in action.items()},
    )


def actor_critic_terms(nets, tensors, fixed, dream, batch, percentiles, config):
    """Losses of actor and critic in imagination (Algorithm F).

    Args:
        percentiles: function from the `(N, H)` returns to the low and high
            percentile of all returns so far.

    Returns:
        Dict of `(B, T)` loss terms, the `(N, H)` returns, dict of metrics.
    """
    value, slow, reward, cont = _evaluate(nets, tensors, fixed, dream)
    if config.imag_start == "data":
        reward, cont = _replace_start(reward, cont, batch)
    discount = 1.0 if config.contdisc else config.discount
    expected = ops.stop_gradient(_swap(value.mean()))
    weight = actor_critic.continuation_weights(cont, discount)
    never = ops.zeros_like(cont)
    returns = lambda_returns(
        reward, 1.0 - cont, never, expected, discount, config.lam
    )
    low, high = percentiles(returns)
    spread = ops.maximum(high - low, config.retnorm_limit)
    advantage = (returns - expected[:, :-1]) / spread
    policy, entropies = _policy_terms(
        nets, tensors, dream, advantage, weight, config
    )
    # The last state has no return; its loss is cut off.
    target = ops.concatenate([returns, never[:, :1]], axis=1)
    value_loss = actor_critic.value_loss(
        value, _swap(target), slow, config.slowreg
    )
    value_loss = weight[:, :-1] * _swap(value_loss)[:, :-1]
    shape = batch["reward"].shape
    terms = {
        "policy": ops.reshape(ops.mean(policy, axis=1), shape),
        "value": ops.reshape(ops.mean(value_loss, axis=1), shape),
    }
    scaled = (returns - low) / spread
    metrics = {
        **_advantage_metrics(advantage, scaled),
        **{f"ent/{k}": ops.mean(x) for k, x in entropies.items()},
        "rew": ops.mean(reward),
        "con": ops.mean(cont),
        "val": ops.mean(expected),
        "tar": ops.mean(returns),
        "weight": ops.mean(weight),
        "slowval": ops.mean(slow),
        "retnorm/lo": low,
        "retnorm/hi": high,
    }
    return terms, returns, metrics


def _evaluate(nets, tensors, fixed, dream):
    """Applies critic, slow critic, reward and continue to all states."""
    features = dream.features
    value = nets.val.distribution(nets.val.apply(tensors["val"], features))
    slow = nets.slowval.apply(fixed["slowval"], features)
    reward = nets.rew.apply(fixed["rew"], features)
    cont = ops.cast(nets.con.apply(fixed["con"], features), "float32")
    return (
        value,
        nets.slowval.distribution(slow).mean(),
        _swap(nets.rew.distribution(reward).mean()),
        _swap(ops.sigmoid(cont)),
    )


def _replace_start(reward, cont, batch):
    """Takes reward and continue of the start from the data (item 3.5)."""
    first = ops.reshape(batch["reward"], (-1, 1))
    goes_on = ops.reshape(1.0 - batch["is_terminal"], (-1, 1))
    return (
        ops.concatenate([first, reward[:, 1:]], axis=1),
        ops.concatenate([goes_on, cont[:, 1:]], axis=1),
    )


def _policy_terms(nets, tensors, dream, advantage, weight, config):
    outputs = nets.pol.apply(tensors["pol"], dream.features[:-1])
    policies = nets.pol.distributions(outputs)
    log_probs = {
        key: _swap(policies[key].log_prob(dream.action[key]))
        for key in policies
    }
    entropies = {key: _swap(policies[key].entropy()) for key in policies}
    loss = actor_critic.policy_loss(
        sum(log_probs.values()),
        sum(entropies.values()),
        advantage,
        weight[:, :-1],
        config.actent,
    )
    return loss, entropies


def _advantage_metrics(advantage, scaled):
    return {
        "adv": ops.mean(advantage),
        "adv_std": ops.std(advantage),
        "adv_mag": ops.mean(ops.abs(advantage)),
        "ret": ops.mean(scaled),
        "ret_min": ops.min(scaled),
        "ret_max": ops.max(scaled),
        "ret_rate": ops.mean(ops.cast(ops.abs(scaled) >= 1.0, "float32")),
    }


def replay_value_term(nets, tensors, posterior, batch, returns, config):
    """Critic loss on the replayed steps (Algorithm G), `(B, T - 1)`."""
    features = posterior.features()
    if not config.repval_grad:
        features = ops.stop_gradient(features)
    value = nets.val.distribution(nets.val.apply(tensors["val"], features))
    slow = nets.slowval.apply(
        tensors["slowval"], ops.stop_gradient(features)
    )
    return actor_critic.replay_value_loss(
        value,
        nets.slowval.distribution(slow).mean(),
        batch,
        ops.reshape(returns[:, 0], batch["reward"].shape),
        config.discount,
        config,
    )


def _swap(x):
    return ops.swapaxes(x, 0, 1)
