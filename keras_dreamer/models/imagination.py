"""Imagined trajectories: what the actor and the critic learn from."""

import dataclasses

import keras
from keras import ops

from keras_dreamer.layers.inputs import concat_inputs

_HEADS = ("pol", "val", "slowval", "rew", "con")


@dataclasses.dataclass(frozen=True)
class Dream:
    """N imagined trajectories of H steps, without gradients.

    Attributes:
        steps: nest of `(H, N, ...)` tensors, the states 0 to H - 1: `deter`
            and `stoch`, the sampled `action`, and the outputs `pol` and `val`
            of the first layers of actor and critic.
        value: `(N, H + 1)`, expected value.
        slow: `(N, H + 1)`, expected value of the slow critic.
        reward: `(N, H + 1)`, expected reward.
        cont: `(N, H + 1)`, probability to go on.
    """

    steps: dict
    value: object
    slow: object
    reward: object
    cont: object


def imagine(nets, fixed, posterior, noise, config):
    """Imagines H steps from every posterior state (items 3.1 to 3.5).

    Nothing here has gradients, so that all heads are evaluated step by step,
    while their activations are in the cache.

    Args:
        nets: `Networks`.
        fixed: weights with stopped gradients: none flow through imagination.
        posterior: `Posterior`.
        noise: nest of `sample_noise`.
        config: `Config`.

    Returns:
        `Dream` with N = B * T trajectories, batch major.
    """

    def policy(projections, noise):
        outputs = nets.pol.finish(fixed["pol"], projections["pol"])
        action = {
            key: distribution.sample(noise[key])
            for key, distribution in nets.pol.distributions(outputs).items()
        }
        dtype = projections["pol"].dtype
        encoded = concat_inputs(nets.pol.leaves, action, dtype)
        first = {name: projections[name] for name in ("pol", "val")}
        predicted = _predict(nets, fixed, projections)
        return encoded, ({"action": action, **first}, predicted)

    start = [
        ops.reshape(ops.stop_gradient(x), (-1, x.shape[-1]))
        for x in (posterior.deter, posterior.stoch)
    ]
    readouts = {name: getattr(nets, name).first(fixed[name]) for name in _HEADS}
    deter, stoch, (steps, predicted), last = nets.dyn.imagine(
        fixed["dyn"],
        start,
        readouts,
        policy,
        (noise["action"], noise["prior"]),
        config.imag_length,
    )
    last = _predict(nets, fixed, last)
    steps = {"deter": deter, "stoch": stoch, **steps}
    return Dream(
        keras.tree.map_structure(ops.stop_gradient, steps),
        **{
            name: ops.stop_gradient(_join(predicted[name], last[name]))
            for name in last
        },
    )


def _predict(nets, fixed, projections):
    """Returns value, slow value, reward and continue, `(N,)` each."""

    def expect(name):
        head = getattr(nets, name)
        logits = head.finish(fixed[name], projections[name])
        return head.distribution(logits).mean()

    con = nets.con.finish(fixed["con"], projections["con"])
    return {
        "value": expect("val"),
        "slow": expect("slowval"),
        "reward": expect("rew"),
        "cont": ops.sigmoid(ops.cast(con, "float32")),
    }


def _join(steps, last):
    """Returns `(N, H + 1)` from `(H, N)` and `(N,)`."""
    return ops.transpose(ops.concatenate([steps, last[None]], axis=0))
