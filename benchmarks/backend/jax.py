"""Measuring on JAX."""

import jax
import keras

from benchmarks.backend.parts import compiled_breakdown as breakdown
from benchmarks.backend.parts import compiled_parts
from benchmarks.hlo import count_kernels

__all__ = ["DEVICE", "Step", "breakdown", "device_peak", "kernels", "parts"]

DEVICE = jax.devices()[0].device_kind
wait = jax.block_until_ready


@jax.jit
def product(a, b):
    return a @ b


def device_peak():
    stats = jax.devices()[0].memory_stats() or {}
    return stats.get("peak_bytes_in_use")


class Step:
    """The compiled step of `fit`, which passes the state on by itself.

    The variables have no values until `close` gives them back.
    """

    def __init__(self, model):
        model.make_train_function()
        self.model = model
        self.state = _state(model, purge_model_variables=True)
        model._jax_state_synced = False

    def __call__(self, batch):
        model = self.model
        logs, self.state = model.train_function(self.state, iter([(batch,)]))
        wait(self.state)
        return logs

    def close(self):
        groups = ("trainable", "non_trainable", "optimizer", "metrics")
        self.model._jax_state = {
            f"{group}_variables": values
            for group, values in zip(groups, self.state, strict=True)
        }
        self.model.jax_state_sync()


def _state(model, **kwargs):
    return model._get_jax_state(
        trainable_variables=True,
        non_trainable_variables=True,
        optimizer_variables=True,
        metrics_variables=True,
        **kwargs,
    )


def kernels(model, batch):
    """Compiles the step once more and counts."""
    step = jax.jit(model.train_step, donate_argnums=0)
    lowered = step.lower(_state(model), (batch,))
    return count_kernels(lowered.compile().as_text())


def parts(model, batch):
    # On the device before the clock starts, like the weights.
    batch = jax.device_put(batch)
    return compiled_parts(model, batch, _compiled, _gradient, wait)


def _compiled(model, function):
    variables = model.trainable_variables + model.non_trainable_variables

    @jax.jit
    def run(values, *args):
        with keras.StatelessScope(zip(variables, values, strict=True)):
            return function(*args)

    values = [variable.value for variable in variables]
    return lambda *args: run(values, *args)


def _gradient(model, function):
    trainable, others = model.trainable_variables, model.non_trainable_variables
    values = [v.value for v in trainable], [v.value for v in others]

    def scoped(trainable_values, other_values, *args):
        pairs = zip(
            trainable + others, trainable_values + other_values, strict=True
        )
        with keras.StatelessScope(pairs):
            return function(*args)

    run = jax.jit(jax.value_and_grad(scoped, has_aux=True))
    return lambda *args: run(*values, *args)
