"""What one update computes, and its running means."""

import typing

import keras
from keras import ops


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
    """

    total: object
    terms: dict
    latents: dict
    metrics: dict


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
    ]


class UpdateMeans(keras.metrics.Metric):
    """Means of named scalars over an epoch, in one vector.

    Args:
        names: names of the scalars.
    """

    def __init__(self, names, **kwargs):
        super().__init__(name="update", dtype="float32", **kwargs)
        self.scalar_names = names
        self.totals = self.add_variable((len(names),), "zeros", name="totals")
        self.count = self.add_variable((), "zeros", name="count")

    def update_state(self, scalars):
        vector = ops.stack([scalars[name] for name in self.scalar_names])
        self.totals.assign(self.totals + ops.stop_gradient(vector))
        self.count.assign(self.count + 1.0)

    def vector(self):
        """Returns the means as one `(names,)` tensor."""
        return self.totals / ops.maximum(self.count, 1.0)

    def result(self):
        means = self.vector()
        return {name: means[i] for i, name in enumerate(self.scalar_names)}
