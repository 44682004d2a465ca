"""Return targets for the critic, and the scale of returns."""

from keras import ops

from keras_dreamer.tensor import Tensor


def lambda_returns(
    reward: Tensor,
    terminal: Tensor,
    last: Tensor,
    bootstrap: Tensor,
    discount: float,
    lam: float,
) -> Tensor:
    """Bootstrapped λ-returns, computed backwards from the last step.

        R[L-1] = bootstrap[L-1]
        R[t]   = reward[t+1] + live[t+1] * ((1 - cont[t+1]) * bootstrap[t+1]
                                            + cont[t+1] * R[t+1])
        live = discount * (1 - terminal),  cont = lam * (1 - last)

    Source: DreamerV3 (https://arxiv.org/abs/2301.04104v2), Eq. 5, with the
    reference's time index: step t + 1 carries the reward of arriving there
    (items 3.7 and 3.19, Algorithm H).

    Args:
        reward: `(N, L)`. Reward received on arriving at each step.
        terminal: `(N, L)` in `[0, 1]`. Probability that the step is terminal.
        last: `(N, L)` in `{0, 1}`. Whether the step ends its sequence, also
            by a time limit: the return is cut there and bootstrapped.
        bootstrap: `(N, L)`. Value estimate of each step.
        discount: float. Factor per step on top of `1 - terminal`.
        lam: float in `[0, 1]`. 0 gives one-step targets.

    Returns:
        `(N, L - 1)` targets for steps `0 .. L - 2`. Gradients flow through;
        stop them where you use the targets.
    """
    live = (1.0 - terminal) * discount
    cont = (1.0 - last) * lam
    fixed = reward + (1.0 - cont) * live * bootstrap
    carried = live * cont
    returns = [bootstrap[:, -1]]
    for step in reversed(range(1, reward.shape[1])):
        returns.append(fixed[:, step] + carried[:, step] * returns[-1])
    return ops.stack(returns[:0:-1], axis=1)


def update_percentiles(
    low: Tensor,
    high: Tensor,
    returns: Tensor,
    rate: float,
    percentiles: tuple[float, float],
) -> tuple[Tensor, Tensor]:
    """Moves the percentiles of the returns towards those of a batch.

        low  <- (1 - rate) * low  + rate * percentile(returns, percentiles[0])
        high <- (1 - rate) * high + rate * percentile(returns, percentiles[1])

    Source: DreamerV3 (https://arxiv.org/abs/2301.04104v2), Eq. 7; item 3.8.

    Args:
        low: float32 scalar tensor.
        high: float32 scalar tensor.
        returns: float32 tensor of any shape, one pool of values.
        rate: float in `[0, 1]`.
        percentiles: pair of floats in percent.

    Returns:
        The new `(low, high)`, without gradients.
    """
    values = ops.reshape(ops.stop_gradient(returns), (-1,))
    batch = ops.quantile(values, [share / 100.0 for share in percentiles])
    return tuple(
        (1.0 - rate) * old + rate * batch[index]
        for index, old in enumerate((low, high))
    )
