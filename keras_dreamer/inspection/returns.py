"""The returns that the agent imagines beside those that it got."""

import dataclasses
from typing import TYPE_CHECKING
from typing import Any

import numpy as np
from keras import ops

from keras_dreamer.inspection import compiled
from keras_dreamer.losses.returns import lambda_returns
from keras_dreamer.models.imagination import imagine
from keras_dreamer.models.noise import noise_shapes
from keras_dreamer.models.world_model import infer

if TYPE_CHECKING:
    from keras_dreamer.models.dreamer import Dreamer


@dataclasses.dataclass(frozen=True)
class Returns:
    """Discounted returns from steps 0 .. T - 2, as `(B, T - 1)` arrays.

    Attributes:
        imagined: lambda-returns of imagination, what the actor learns from.
        real: sums of the recorded rewards. Where the recording ends without
            a terminal state the critic's value of the last state is added.
        estimated: weight of that value, in `[0, 1]`: 0 where all of `real`
            was recorded.
        valid: bool. False in the last step of an episode, which has no return.
    """

    imagined: np.ndarray
    real: np.ndarray
    estimated: np.ndarray
    valid: np.ndarray


def compare_returns(
    model: "Dreamer", batch: dict[str, Any], seed: int = 0
) -> Returns:
    """Imagines from every recorded state and compares with what followed.

    Imagination follows the current policy. Give it what this policy, or one
    close to it, has recorded.

    Args:
        model: `Dreamer`.
        batch: windows of K + T rows, K = `replay_context`, what
            `ReplayDataset.draw` and `Replay.read` return. The longer they are,
            the less of a return is estimated.
        seed: int. Seed of the noise.

    Returns:
        `Returns`.

    Example:

    >>> batch = replay.read(replay.newest_ids(500))
    >>> returns = keras_dreamer.inspection.compare_returns(model, batch)
    >>> error = (returns.imagined - returns.real)[returns.valid]
    """
    config = model.config
    rows, length = np.shape(batch["is_first"])
    steps = length - config.replay_context
    noise = _noise(model, rows, steps, np.random.default_rng(seed))

    def run(tensors, batch, noise):
        nets = model.networks
        states, _ = infer(nets, tensors, batch, noise["posterior"])
        dream = imagine(nets, tensors, states, noise, config)
        imagined = lambda_returns(
            dream.reward,
            1.0 - dream.cont,
            ops.zeros_like(dream.cont),
            dream.value,
            1.0 if config.contdisc else config.discount,
            config.lam,
        )
        first = (rows, steps)
        value = ops.reshape(dream.value[:, 0], first)
        return ops.reshape(imagined[:, 0], first)[:, :-1], value

    imagined, value = compiled.call(model, run, batch, noise)
    reward, last, terminal = (
        np.asarray(batch[name], "float32")[:, config.replay_context :]
        for name in ("reward", "is_last", "is_terminal")
    )
    return Returns(
        imagined,
        discounted(reward, last, terminal, value, config.discount),
        discounted(0 * reward, last, terminal, 0 * value + 1, config.discount),
        last[:, :-1] == 0,
    )


def discounted(reward, last, terminal, value, discount):
    """Returns the discounted sums of the rewards after each step.

    Args:
        reward: `(B, T)` array. Reward of arriving at each step.
        last: `(B, T)`. Whether an episode ends there.
        terminal: `(B, T)`. Whether nothing comes after.
        value: `(B, T)`. What comes after an end that is not terminal.
        discount: float.

    Returns:
        `(B, T - 1)` array.
    """
    sums = np.zeros_like(reward[:, 1:])
    following = value[:, -1]
    for step in reversed(range(sums.shape[1])):
        ends = last[:, step + 1] > 0
        after = np.where(ends, value[:, step + 1], following)
        live = discount * (1.0 - terminal[:, step + 1])
        following = sums[:, step] = reward[:, step + 1] + live * after
    return sums


def _noise(model, rows, steps, rng):
    """Returns noise like `Dreamer.sample_noise`, drawn on the host."""
    shapes = noise_shapes(model.config, model.action_leaves, rows, steps)
    action = {
        key: rng.random(shape, "float32")
        if model.action_leaves[key].discrete
        else rng.standard_normal(shape, "float32")
        for key, shape in shapes["action"].items()
    }
    return {
        "posterior": rng.random(shapes["posterior"], "float32"),
        "prior": rng.random(shapes["prior"], "float32"),
        "action": action,
    }
