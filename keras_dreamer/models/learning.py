"""Actor-critic part of an update: returns, losses, replay value."""

import typing

from keras import ops

from keras_dreamer.backend import accumulate
from keras_dreamer.layers.functional import known_dense
from keras_dreamer.losses import actor_critic as losses
from keras_dreamer.losses.returns import lambda_returns
from keras_dreamer.losses.returns import update_percentiles


class Learned(typing.NamedTuple):
    """What actor and critic learn from a `Dream`.

    Attributes:
        total: scalar, the scaled sum of the terms' means.
        terms: dict of `(B, T)` losses.
        returns: `(N, H)` lambda returns.
        metrics: dict of scalars.
    """

    total: object
    terms: dict
    returns: object
    metrics: dict


def actor_critic(nets, tensors, dream, batch, normalize, config):
    """Losses of actor and critic in imagination (Algorithm F).

    Args:
        nets: `Networks`.
        tensors: their weights.
        dream: `Dream`.
        batch: prepared batch.
        normalize: function from the `(N, H)` returns to the low and high
            percentile of all returns so far.
        config: `Config`.

    Returns:
        `Learned`.
    """
    reward, cont = dream.reward, dream.cont
    if config.imag_start == "data":
        reward, cont = _replace_start(reward, cont, batch)
    discount = 1.0 if config.contdisc else config.discount
    weight = losses.continuation_weights(cont, discount)
    never = ops.zeros_like(cont)
    returns = lambda_returns(
        reward, 1.0 - cont, never, dream.value, discount, config.lam
    )
    low, high = normalize(returns)
    spread = ops.maximum(high - low, config.retnorm_limit)
    advantage = (returns - dream.value[:, :-1]) / spread
    goals = {
        "advantage": advantage,
        "weight": weight[:, :-1],
        "returns": returns,
        "slow": dream.slow[:, :-1],
    }
    total, unreduced, entropies = _learn(nets, tensors, dream, goals, config)
    shape = batch["reward"].shape
    terms = {
        name: ops.reshape(ops.mean(loss, axis=0), shape)
        for name, loss in unreduced.items()
    }
    metrics = {
        **_advantage_metrics(advantage, (returns - low) / spread),
        **{f"ent/{k}": ops.mean(x) for k, x in entropies.items()},
        "rew": ops.mean(reward),
        "con": ops.mean(cont),
        "val": ops.mean(dream.value),
        "tar": ops.mean(returns),
        "weight": ops.mean(weight),
        "slowval": ops.mean(dream.slow),
        "retnorm/lo": low,
        "retnorm/hi": high,
    }
    return Learned(total, terms, returns, metrics)


def _learn(nets, tensors, dream, goals, config):
    """Returns the scaled loss, and `(H, N)` losses and entropies."""
    scales = {name: config.loss_scales[name] for name in ("policy", "value")}
    count = goals["returns"].shape[0] * goals["returns"].shape[1]

    def learn(tensors, rows):
        policy, entropies = _policy_loss(nets.pol, tensors, rows, config)
        terms = {
            "policy": policy,
            "value": _value_loss(nets.val, tensors, rows, config),
        }
        total = sum(
            ops.sum(term) * (scales[name] / count)
            for name, term in terms.items()
        )
        return total, (terms, entropies)

    steps = {name: ops.transpose(goal) for name, goal in goals.items()}
    first = {
        name: _transposed(head.first(tensors[name]))
        for name, head in (("pol", nets.pol), ("val", nets.val))
    }
    total, (terms, entropies) = accumulate(
        learn,
        {"pol": tensors["pol"], "val": tensors["val"], "first": first},
        {**dream.steps, **steps},
    )
    return total, terms, entropies


def _transposed(layer):
    """Returns the arguments of `known_dense`, of which gradients are summed."""
    return ops.transpose(layer["kernel"]), layer["bias"]


def _first_layer(tensors, rows, name):
    """Returns what imagination computed, now with gradients."""
    features = (rows["deter"], rows["stoch"])
    return known_dense(*tensors["first"][name], features, rows[name])


def _policy_loss(head, tensors, rows, config):
    x = _first_layer(tensors, rows, "pol")
    policies = head.distributions(head.finish(tensors["pol"], x))
    entropies = {key: policy.entropy() for key, policy in policies.items()}
    log_probs = [
        policy.log_prob(rows["action"][key]) for key, policy in policies.items()
    ]
    loss = losses.policy_loss(
        sum(log_probs),
        sum(entropies.values()),
        rows["advantage"],
        rows["weight"],
        config.actent,
    )
    return loss, entropies


def _value_loss(head, tensors, rows, config):
    x = _first_layer(tensors, rows, "val")
    value = head.distribution(head.finish(tensors["val"], x))
    loss = losses.value_loss(
        value, rows["returns"], rows["slow"], config.slowreg
    )
    return rows["weight"] * loss


def percentiles(model, returns, training):
    """Moves the model's return percentiles, then reads them (item 3.8)."""
    old = (model.retnorm_low, model.retnorm_high)
    if not training:
        return tuple(ops.cast(value, "float32") for value in old)
    c = model.config
    new = update_percentiles(
        *old, returns, c.retnorm_rate, (c.retnorm_perclo, c.retnorm_perchi)
    )
    for variable, value in zip(old, new, strict=True):
        variable.assign(value)
    return new


def _replace_start(reward, cont, batch):
    """Takes reward and continue of the start from the data (item 3.5)."""
    first = ops.reshape(batch["reward"], (-1, 1))
    goes_on = ops.reshape(1.0 - batch["is_terminal"], (-1, 1))
    return (
        ops.concatenate([first, reward[:, 1:]], axis=1),
        ops.concatenate([goes_on, cont[:, 1:]], axis=1),
    )


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
    slow = nets.slowval.apply(tensors["slowval"], ops.stop_gradient(features))
    return losses.replay_value_loss(
        value,
        nets.slowval.distribution(slow).mean(),
        batch,
        ops.reshape(returns[:, 0], batch["reward"].shape),
        config.discount,
        config,
    )
