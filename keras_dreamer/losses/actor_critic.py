"""Losses of the actor and the critic."""

from collections.abc import Mapping

from keras import ops

from keras_dreamer.config import Config
from keras_dreamer.losses.returns import lambda_returns
from keras_dreamer.losses.two_hot import TwoHot
from keras_dreamer.tensor import Tensor


def policy_loss(
    log_prob: Tensor,
    entropy: Tensor,
    advantage: Tensor,
    weight: Tensor,
    entropy_scale: float,
) -> Tensor:
    """Reinforce with an entropy bonus, for every kind of action.

        -weight * (log_prob * advantage + entropy_scale * entropy)

    Source: DreamerV3 (https://arxiv.org/abs/2301.04104v2), Eq. 6; item 3.11.

    Args:
        log_prob: `(N, H)`. Of the sampled actions, which are constants.
        entropy: `(N, H)`, in nats.
        advantage: `(N, H)`, in units of the return scale. A constant.
        weight: `(N, H)`. Probability of getting there, discounted. A
            constant.
        entropy_scale: float.

    Returns:
        `(N, H)` float32 tensor.
    """
    advantage, weight = map(ops.stop_gradient, (advantage, weight))
    return -weight * (log_prob * advantage + entropy_scale * entropy)


def value_loss(
    value: TwoHot, target: Tensor, slow_value: Tensor, slow_scale: float
) -> Tensor:
    """Regression on returns, pulled towards the slow critic's value.

        value.loss(target) + slow_scale * value.loss(slow_value)

    Source: DreamerV3 (https://arxiv.org/abs/2301.04104v2), p. 6; item 3.17.

    Args:
        value: `TwoHot` distribution of shape `(N, L)`.
        target: `(N, L)`. A constant, in raw space.
        slow_value: `(N, L)`. Expected value of the slow critic, a constant.
        slow_scale: float.

    Returns:
        `(N, L)` float32 tensor, in nats.
    """
    target, slow_value = map(ops.stop_gradient, (target, slow_value))
    return value.loss(target) + slow_scale * value.loss(slow_value)


def continuation_weights(cont: Tensor, discount: float) -> Tensor:
    """Discounted probability that a trajectory goes on through each step.

        weight[t] = discount ** t * prod(cont[: t + 1])

    Source: `dreamerv3/agent.py` of danijar/dreamerv3 at e3f0224; item 3.6.

    Args:
        cont: `(N, L)`. Probability of going on at each step.
        discount: float. 1 where the discount is part of `cont`.

    Returns:
        `(N, L)` float32 tensor, without gradients.
    """
    weights = [ops.stop_gradient(cont[:, 0])]
    for step in range(1, cont.shape[1]):
        going_on = ops.stop_gradient(cont[:, step])
        weights.append(weights[-1] * discount * going_on)
    return ops.stack(weights, axis=1)


def replay_value_loss(
    value: TwoHot,
    slow_value: Tensor,
    batch: Mapping[str, Tensor],
    bootstrap: Tensor,
    discount: float,
    config: Config,
) -> Tensor:
    """Critic loss on replayed rewards, bootstrapped by imagined returns.

    Its features are not constants: it shapes the world model (item 2.16).

    Source: DreamerV3 (https://arxiv.org/abs/2301.04104v2), p. 6; item 3.19,
    Algorithm G.

    Args:
        value: `TwoHot` distribution of shape `(B, T)`.
        slow_value: `(B, T)`. Expected value of the slow critic.
        batch: dict with `reward`, `is_last` and `is_terminal`, `(B, T)`
            float32 tensors.
        bootstrap: `(B, T)`. Imagined λ-returns of the same states.
        discount: float per step.
        config: `Config` with `repval_lam` and `slowreg`.

    Returns:
        `(B, T - 1)` float32 tensor, 0 where an episode ends.
    """
    returns = lambda_returns(
        batch["reward"],
        batch["is_terminal"],
        batch["is_last"],
        bootstrap,
        discount,
        config.repval_lam,
    )
    # The last step has no return; its loss is cut off below.
    target = ops.concatenate([returns, bootstrap[:, -1:]], axis=1)
    loss = value_loss(value, target, slow_value, config.slowreg)
    return ((1.0 - batch["is_last"]) * loss)[:, :-1]
