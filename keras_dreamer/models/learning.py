"""Actor-critic part of an update: imagine, returns, replay value."""

import dataclasses

import keras
from keras import ops

from keras_dreamer.layers.inputs import concat_inputs
from keras_dreamer.losses import actor_critic
from keras_dreamer.losses.returns import lambda_returns


@dataclasses.dataclass(frozen=True)
class Dream:
    """Imagined trajectories without gradients, one state a row.

    `features` `(H * N, D + S * C)` are the states 0 to H - 1, all N of a step
    after those of the step before, `action` the `(H * N, ...)` actions taken
    there, and `last` `(N, D + S * C)` the states H, where values only
    bootstrap.
    """

    features: object
    action: dict
    last: object


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

    def policy(features, noise):
        outputs = nets.pol.apply(fixed["pol"], features)
        action = {
            key: distribution.sample(noise[key])
            for key, distribution in nets.pol.distributions(outputs).items()
        }
        return action, concat_inputs(nets.pol.leaves, action, features.dtype)

    start = tuple(
        _rows(ops.stop_gradient(x)) for x in (posterior.deter, posterior.stoch)
    )
    states = nets.dyn.imagine(
        fixed["dyn"],
        start,
        policy,
        (noise["action"], noise["prior"]),
        config.imag_length,
    )
    features, action, last = keras.tree.map_structure(ops.stop_gradient, states)
    action = {
        key: ops.reshape(value, (-1, *value.shape[2:]))
        for key, value in action.items()
    }
    return Dream(_rows(features), action, last)


def actor_critic_terms(nets, tensors, fixed, dream, batch, percentiles, config):
    """Losses of actor and critic in imagination (Algorithm F).

    Args:
        percentiles: function from the `(N, H)` returns to the low and high
            percentile of all returns so far.

    Returns:
        Dict of `(B, T)` loss terms, the `(N, H)` returns, dict of metrics.
    """
    value, slow, expected, reward, cont = _evaluate(nets, tensors, fixed, dream)
    if config.imag_start == "data":
        reward, cont = _replace_start(reward, cont, batch)
    discount = 1.0 if config.contdisc else config.discount
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
    value_loss = actor_critic.value_loss(
        value, _to_rows(returns), _to_rows(slow[:, :-1]), config.slowreg
    )
    value_loss = weight[:, :-1] * _to_trajectories(value_loss, weight.shape[0])
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
    """Applies critic, slow critic, reward and continue to all states.

    Returns:
        `TwoHot` values of the states 0 to H - 1, with gradients, and four
        `(N, H + 1)` tensors without: expected value, slow value, reward and
        continue.
    """
    value = nets.val.distribution(
        nets.val.apply(tensors["val"], dream.features)
    )

    def expect(head, name):
        means = [
            head.distribution(head.apply(fixed[name], features)).mean()
            for features in (dream.features, dream.last)
        ]
        return _join(*means)

    def goes_on(features):
        logits = nets.con.apply(fixed["con"], features)
        return ops.sigmoid(ops.cast(logits, "float32"))

    last = nets.val.distribution(nets.val.apply(fixed["val"], dream.last))
    expected = ops.stop_gradient(value.mean())
    return (
        value,
        expect(nets.slowval, "slowval"),
        _join(expected, last.mean()),
        expect(nets.rew, "rew"),
        _join(goes_on(dream.features), goes_on(dream.last)),
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
    outputs = nets.pol.apply(tensors["pol"], dream.features)
    policies = nets.pol.distributions(outputs)
    count = weight.shape[0]
    log_probs = {
        key: _to_trajectories(policy.log_prob(dream.action[key]), count)
        for key, policy in policies.items()
    }
    entropies = {
        key: _to_trajectories(policy.entropy(), count)
        for key, policy in policies.items()
    }
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
    slow = nets.slowval.apply(tensors["slowval"], ops.stop_gradient(features))
    return actor_critic.replay_value_loss(
        value,
        nets.slowval.distribution(slow).mean(),
        batch,
        ops.reshape(returns[:, 0], batch["reward"].shape),
        config.discount,
        config,
    )


def _rows(x):
    """Flattens all axes but the last."""
    return ops.reshape(x, (-1, x.shape[-1]))


def _to_trajectories(x, count):
    """Turns `(H * N,)` rows of a `Dream` into `(N, H)`."""
    return ops.transpose(ops.reshape(x, (-1, count)))


def _to_rows(x):
    """Turns `(N, H)` into the `(H * N,)` rows of a `Dream`."""
    return ops.reshape(ops.transpose(x), (-1,))


def _join(rows, last):
    """Returns `(N, H + 1)` from the rows of a `Dream` and the last states."""
    rows = _to_trajectories(rows, last.shape[0])
    return ops.concatenate([rows, last[:, None]], axis=1)
