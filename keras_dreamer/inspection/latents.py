"""How much of the latent state is in use."""

import dataclasses
from typing import TYPE_CHECKING
from typing import Any

import numpy as np
from keras import ops

from keras_dreamer.inspection import compiled
from keras_dreamer.models.world_model import infer

if TYPE_CHECKING:
    from keras_dreamer.models.dreamer import Dreamer


@dataclasses.dataclass(frozen=True)
class LatentUsage:
    """Statistics of the S latents of C classes, as NumPy arrays.

    Attributes:
        share: `(S, C)`. How often each class was chosen, summing to 1.
        posterior_entropy: `(S,)`. Mean entropy once the observation is known,
            in nats.
        prior_entropy: `(S,)`. Mean entropy before it is known, in nats.
    """

    share: np.ndarray
    posterior_entropy: np.ndarray
    prior_entropy: np.ndarray

    @property
    def used(self):
        """Classes in use of each latent, `(S,)`: those chosen at least a tenth
        as often as if all were chosen equally often."""
        return (self.share >= 0.1 / self.share.shape[1]).sum(axis=1)

    @property
    def effective(self):
        """`exp` of the entropy of `share`, `(S,)`: C when all classes are
        equally frequent, 1 when it is always the same one."""
        share = np.maximum(self.share, 1e-30)
        return np.exp(-(share * np.log(share)).sum(axis=1))


def latent_usage(
    model: "Dreamer", batch: dict[str, Any], seed: int = 0
) -> LatentUsage:
    """Counts the classes of the latents over a batch.

    Args:
        model: `Dreamer`.
        batch: windows of K + T rows, K = `replay_context`, what
            `ReplayDataset.draw` and `Replay.read` return. T may be any.
        seed: int. Seed of the latents' noise.

    Returns:
        `LatentUsage` over all B * T steps.

    Example:

    >>> usage = keras_dreamer.inspection.latent_usage(model, dataset.draw())
    >>> usage.used.mean(), usage.posterior_entropy.mean()
    """
    config = model.config
    rows, length = np.shape(batch["is_first"])
    noise = np.random.default_rng(seed).random(
        (rows, length - config.replay_context, config.stoch), "float32"
    )

    def run(tensors, batch, noise):
        rssm = model.networks.dyn
        states, logits = infer(model.networks, tensors, batch, noise)
        chosen = ops.reshape(states.stoch, (-1, config.stoch, config.classes))
        prior = rssm.prior(tensors["dyn"], states.deter)
        return (
            ops.mean(ops.cast(chosen, "float32"), axis=0),
            _mean_entropy(rssm.latents(logits)),
            _mean_entropy(rssm.latents(prior)),
        )

    return LatentUsage(*compiled.call(model, run, batch, noise))


def _mean_entropy(latents):
    """Returns the mean entropy of each latent, `(S,)`."""
    entropy = -ops.sum(latents.probs * latents.log_probs, axis=-1)
    return ops.mean(entropy, axis=(0, 1))
