"""What one update computes, and its running means."""

import typing

import keras
from keras import ops

from keras_dreamer.models.networks import PARTS


class LossTerms(typing.NamedTuple):
    """Result of `Dreamer.loss_terms`.

    Attributes:
        total: float32 scalar, the scaled sum of the terms' means.
        terms: dict of unreduced float32 tensors. `rec/<key>`, `rew`, `con`,
            `dyn`, `rep`, `policy` and `value` are `(B, T)`, `repval` is
            `(B, T - 1)`.
        latents: dict with `deter` `(B, T, D)` and `stoch` `(B, T, S)` class
            indices: the fresh states of the trained steps.
        metrics: dict of float32 scalars.
        percentiles: pair of scalars, the return percentiles before the
            update.
    """

    total: object
    terms: dict
    latents: dict
    metrics: dict
    percentiles: tuple = ()


def weighted_total(terms, scales):
    """Returns `sum(scale * mean(term))`, a float32 scalar (item 4.1)."""
    return sum(
        scales[name.split("/")[0]] * ops.mean(term)
        for name, term in terms.items()
    )


def assemble(posterior, total, terms, metrics, config):
    """Returns the `LossTerms` of an update.

    Args:
        posterior: states of the trained steps, with `deter` `(B, T, D)` and
            `stoch` `(B, T, S * C)`.
        total: scaled sum of the terms' means.
        terms: dict of unreduced losses.
        metrics: dict of further scalars.
        config: `Config`.
    """
    one_hot = ops.reshape(
        ops.stop_gradient(posterior.stoch),
        (*posterior.stoch.shape[:-1], config.stoch, config.classes),
    )
    latents = {
        "deter": ops.stop_gradient(posterior.deter),
        "stoch": ops.cast(ops.argmax(one_hot, axis=-1), "int32"),
    }
    metrics = {
        "loss": total,
        **{f"loss/{name}": ops.mean(x) for name, x in terms.items()},
        **metrics,
    }
    return LossTerms(total, terms, latents, metrics)


def metric_names(observation, action):
    """Returns the names of all metrics in the order they are tracked.

    Args:
        observation: names of the observation's keys.
        action: names of the action's keys.
    """
    losses = [f"rec/{key}" for key in observation]
    losses += "rew con dyn rep policy value repval".split()
    return [
        "loss",
        *(f"loss/{name}" for name in losses),
        *"dyn_ent rep_ent adv adv_std adv_mag rew con ret val tar".split(),
        *"weight slowval ret_min ret_max ret_rate".split(),
        *"retnorm/lo retnorm/hi".split(),
        *(f"ent/{key}" for key in action),
        "grad_norm",
        *(f"grad_norm/{part}" for part in PARTS),
    ]


class UpdateMeans(keras.metrics.Metric):
    """Means of named scalars over an epoch, in one vector.

    The last entry, `skipped`, is a sum: the number of updates that were not
    finite. They enter no mean.

    Args:
        names: names of the other scalars.
    """

    def __init__(self, names, **kwargs):
        super().__init__(name="update", dtype="float32", **kwargs)
        self.scalar_names = [*names, "skipped"]
        size = len(self.scalar_names)
        self.totals = self.add_variable((size,), "zeros", name="totals")
        self.count = self.add_variable((), "zeros", name="count")

    def update_state(self, scalars, finite):
        """Adds an update.

        Args:
            scalars: dict of scalar tensors.
            finite: bool tensor, whether the update was applied.

        Returns:
            The scalars as one `(names + 1,)` tensor.
        """
        skipped = 1.0 - ops.cast(finite, "float32")
        values = [ops.cast(scalars[k], "float32") for k in self._own_names()]
        vector = ops.stop_gradient(ops.stack([*values, skipped]))
        added = ops.where(finite, vector, self._mask())
        self.totals.assign(self.totals + added)
        self.count.assign(self.count + (1.0 - skipped))
        return vector

    def _own_names(self):
        return self.scalar_names[:-1]

    def _mask(self):
        """Returns 1 at `skipped` and 0 elsewhere."""
        return ops.convert_to_tensor(
            [0.0] * len(self._own_names()) + [1.0], "float32"
        )

    def vector(self):
        """Returns the means as one `(names + 1,)` tensor."""
        mask = self._mask()
        return self.totals / (mask + (1.0 - mask) * self.count)

    def result(self):
        means = self.vector()
        return {name: means[i] for i, name in enumerate(self.scalar_names)}
