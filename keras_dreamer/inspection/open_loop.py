"""What the world model foresees of observations that it is not shown."""

import dataclasses
from typing import TYPE_CHECKING
from typing import Any

import numpy as np
from keras import ops

from keras_dreamer import symlog
from keras_dreamer.inspection import compiled
from keras_dreamer.layers.decoder import categorical_of
from keras_dreamer.layers.inputs import concat_inputs
from keras_dreamer.models.world_model import Posterior
from keras_dreamer.models.world_model import decode
from keras_dreamer.models.world_model import infer

if TYPE_CHECKING:
    from keras_dreamer.models.dreamer import Dreamer


@dataclasses.dataclass(frozen=True)
class OpenLoop:
    """Predictions beside what happened, as NumPy arrays of T trained steps.

    Attributes:
        context: int. So many first steps were observed.
        prediction: dict of what the decoder says of each key: numbers
            `(B, T, *shape)` in the observation's own units, and of integers
            the probabilities `(B, T, *shape, classes)`.
        truth: dict of the observations, `(B, T, *shape)`.
        predicted_reward: `(B, T)`.
        reward: `(B, T)`.
        valid: `(B, T)` bool. False from the first step after the context that
            belongs to another episode, which nobody could foresee.
    """

    context: int
    prediction: dict
    truth: dict
    predicted_reward: np.ndarray
    reward: np.ndarray
    valid: np.ndarray


def open_loop(
    model: "Dreamer",
    batch: dict[str, Any],
    context: int,
    seed: int = 0,
) -> OpenLoop:
    """Observes some steps, then predicts on from the recorded actions.

        state[t] = posterior(state[t-1], action[t-1], observation[t])
                                                        for t < context
        state[t] = prior(state[t-1], action[t-1])       from there on

    Every row is one sampled future; repeat a row to see several of them.

    Args:
        model: `Dreamer`.
        batch: windows of K + T rows, K = `replay_context`, what
            `ReplayDataset.draw` and `Replay.read` return. T may be any.
        context: int from 1 to T - 1. Trained steps that are observed.
        seed: int. Seed of the latents' noise.

    Returns:
        `OpenLoop`.

    Example:

    >>> batch = dataset.draw()
    >>> result = keras_dreamer.inspection.open_loop(model, batch, context=8)
    >>> future = result.prediction["position"][:, 8:]
    """
    skipped = model.config.replay_context
    rows, length = np.shape(batch["is_first"])
    steps = length - skipped
    if not 0 < context < steps:
        raise ValueError(
            "`context` must leave steps to predict: it goes from 1 to the "
            f"number of trained steps less 1, here {steps - 1}. Received: "
            f"context={context}. Lower it or take longer windows."
        )
    rng = np.random.default_rng(seed)
    latents = model.config.stoch
    noise = (
        rng.random((rows, context, latents), "float32"),
        rng.random((steps - context + 1, rows, latents), "float32"),
    )

    def run(tensors, batch, *noise):
        return _predict(model.networks, tensors, batch, noise, context)

    prediction, reward = compiled.call(model, run, batch, *noise)
    is_first = np.array(batch["is_first"])[:, skipped:]
    is_first[:, :context] = False
    return OpenLoop(
        context,
        prediction,
        {
            key: np.asarray(batch["observation"][key])[:, skipped:]
            for key in model.observation_leaves
        },
        reward,
        np.asarray(batch["reward"])[:, skipped:],
        np.cumsum(is_first, axis=1) == 0,
    )


def _predict(nets, tensors, batch, noise, context):
    posterior_noise, prior_noise = noise
    seen = {"carry": batch["carry"], "is_first": batch["is_first"][:, :context]}
    for name in ("observation", "previous_action"):
        seen[name] = {k: x[:, :context] for k, x in batch[name].items()}
    observed, _ = infer(nets, tensors, seen, posterior_noise)
    dreamed = _dream(nets, tensors, batch, observed, prior_noise, context)
    states = Posterior(
        *(
            ops.concatenate(parts, axis=1)
            for parts in zip(
                (observed.deter, observed.stoch), dreamed, strict=True
            )
        )
    )
    decoded = decode(nets, tensors, states)
    reward = nets.rew.apply(tensors["rew"], states.features())
    return {
        key: _readable(leaf, decoded[key])
        for key, leaf in nets.dec.leaves.items()
    }, nets.rew.distribution(reward).mean()


def _dream(nets, tensors, batch, observed, noise, context):
    """Returns `deter` and `stoch` of the steps after the context."""
    action = {k: x[:, context:] for k, x in batch["previous_action"].items()}
    action = concat_inputs(nets.pol.leaves, action, observed.deter.dtype)
    # The action of the last state leads out of the window.
    action = ops.concatenate([action, ops.zeros_like(action[:, :1])], axis=1)
    deter, stoch, *_ = nets.dyn.imagine(
        tensors["dyn"],
        (observed.deter[:, -1], observed.stoch[:, -1]),
        {},
        lambda projections, recorded: (recorded, ()),
        (ops.swapaxes(action, 0, 1), noise),
        noise.shape[0],
    )
    # The first state is the last one of the context.
    return [ops.swapaxes(x, 0, 1)[:, 1:] for x in (deter, stoch)]


def _readable(leaf, decoded):
    if leaf.discrete:
        return categorical_of(leaf, decoded).probs
    return symlog.symexp(decoded)
