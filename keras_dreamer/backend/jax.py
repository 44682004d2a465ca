"""JAX: stateless training step, jitted with donated state."""

import functools

import jax
import keras
import numpy as np
from jax.experimental import multihost_utils

from keras_dreamer.backend.exchange import run_step
from keras_dreamer.backend.finite import measure
from keras_dreamer.backend.flat import LaPropUpdate as LaPropUpdate
from keras_dreamer.backend.jax_loops import accumulate as accumulate
from keras_dreamer.backend.jax_loops import matmul as matmul
from keras_dreamer.backend.jax_loops import on_cpu as on_cpu
from keras_dreamer.backend.jax_loops import outer as outer
from keras_dreamer.backend.jax_loops import scan_layers as scan_layers

normal = functools.partial(keras.random.normal, dtype="float32")
uniform = functools.partial(keras.random.uniform, dtype="float32")


def blocks_apart():
    """Tells whether block layers are faster as one product a block."""
    return on_cpu()


def configure(cache):
    """Sets the backend up; see `keras_dreamer.configure_runtime`.

    Returns:
        Whether updates take their memory from this process's `malloc`.
    """
    if cache is not None:
        jax.config.update("jax_compilation_cache_dir", cache)
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    return on_cpu()


def as_numpy(tensor):
    """Returns an array to be read; on the CPU it is the tensor's memory."""
    return np.asarray(tensor)


def device():
    """Returns the name of the device that computes, as "cuda:0 Tesla T4"."""
    first = jax.devices()[0]
    return "cpu" if on_cpu() else f"{first} {first.device_kind}"


def scan(step, carry, inputs, length):
    """Applies `step` to every entry of the first axis.

    Args:
        step: function `(carry, inputs_t) -> (carry, outputs_t)`.
        carry: nest of tensors.
        inputs: nest of `(length, ...)` tensors; `None` stays `None`.
        length: int.

    Returns:
        The last carry and the nest of `(length, ...)` outputs.
    """
    return jax.lax.scan(step, carry, inputs, length)


class Trainer:
    """Training step and newest variables on JAX."""

    def __setattr__(self, name, value):
        if name == "_jax_state":
            # `fit` sets it after every update. Keras would copy its lists
            # into lists of its own and look at each of their arrays.
            self.__dict__[name] = value
        else:
            super().__setattr__(name, value)

    def train_step(self, state, data):
        trainable, non_trainable, optimizer, metrics = state
        gradient = jax.value_and_grad(self._scoped_loss, has_aux=True)
        (_, (update, non_trainable)), gradients = gradient(
            trainable, non_trainable, data[0]
        )
        finite, norms = measure(update.total, gradients, self.gradient_parts)
        # The choice is part of the loop that computes the new values.
        trainable, optimizer = jax.tree.map(
            lambda new, old: jax.numpy.where(finite, new, old),
            self.optimizer.stateless_apply(optimizer, gradients, trainable),
            (trainable, optimizer),
        )
        groups = (self.non_trainable_variables, self.metrics_variables)
        scope = keras.StatelessScope(
            zip(sum(groups, []), non_trainable + metrics, strict=True)
        )
        with scope:
            logs = self.track_update(update, finite, norms)
        non_trainable, metrics = (
            [scope.get_current_value(v) for v in group] for group in groups
        )
        return logs, (trainable, non_trainable, optimizer, metrics)

    def _scoped_loss(self, trainable, non_trainable, batch):
        variables = self.trainable_variables + self.non_trainable_variables
        scope = keras.StatelessScope(
            zip(variables, trainable + non_trainable, strict=True)
        )
        with scope:
            update = self.update_terms(batch)
        changed = [
            scope.get_current_value(v) for v in self.non_trainable_variables
        ]
        return update.total, (update, changed)

    def make_train_function(self, force=False):
        if self.train_function is not None and not force:
            return
        super().make_train_function(force)
        inner, exchange = self.train_function, self.exchange

        def step(state, iterator):
            def call(batch):
                if exchange.source:  # Keras does it with its own batches.
                    batch = _spread(batch)
                logs, exchange.state = inner(state, iter(((batch,),)))
                return {**logs, "latents": _own_rows(logs["latents"])}

            return run_step(exchange, iterator, call), exchange.state

        self.train_function = step

    def compile_function(self, function, variables):
        """Returns `function` compiled, reading the newest `variables`."""

        @jax.jit
        def run(values, *args):
            with keras.StatelessScope(zip(variables, values, strict=True)):
                return function(*args)

        return lambda *args: run(_on_one(self.newest(variables)), *args)

    def newest(self, variables):
        """Returns the values of variables, also while `fit` runs."""
        if not self._fitting():
            # `Variable.value` takes a fifth of the time of a small policy.
            return [v._value for v in variables]
        where = self._positions()
        return [
            self.exchange.state[group][index]
            for group, index in (where[id(v)] for v in variables)
        ]

    def blend(self, count, targets, sources, rates):
        """Moves variables towards others: an exponential average.

        Args:
            count: integer variable, how often this was done. It goes up.
            targets: list of variables.
            sources: list of variables.
            rates: pair of floats, for the first time and for all others.
        """
        # `fit` owns its state. Other arrays may be in somebody else's hands.
        blend = _blend_in_place if self._fitting() else _blend
        self._write(
            [count, *targets],
            blend(*map(self.newest, ([count], targets, sources)), rates),
        )

    def _fitting(self):
        """Tells whether the newest values are in the state of `fit`."""
        return not self._jax_state_synced and self.exchange.state is not None

    def _write(self, variables, values):
        if not self._fitting():
            for variable, value in zip(variables, values, strict=True):
                variable.assign(value)
            return
        # Keras holds the same lists in its loop and, for callbacks that ask
        # for the model's variables, in `_jax_state`.
        where = self._positions()
        for variable, value in zip(variables, values, strict=True):
            group, index = where[id(variable)]
            self.exchange.state[group][index] = value

    def _positions(self):
        if not self.exchange.positions:
            groups = (self.trainable_variables, self.non_trainable_variables)
            self.exchange.positions = {
                id(variable): (group, index)
                for group, members in enumerate(groups)
                for index, variable in enumerate(members)
            }
        return self.exchange.positions


def _average(count, targets, sources, rates):
    (count,) = count
    rate = jax.numpy.where(count == 0, *rates)
    blended = [
        rate * source + (1 - rate) * target
        for target, source in zip(targets, sources, strict=True)
    ]
    return [count + 1, *blended]


_blend = jax.jit(_average)
_blend_in_place = jax.jit(_average, donate_argnames="targets")


def _rows_sharding():
    """Returns how the first axis of a batch is spread, or `None`."""
    distribution = keras.distribution.distribution()
    if distribution is None:
        return None
    return distribution.get_data_layout((None,)).backend_layout


def _spread(batch):
    """Puts the rows of this process on its devices.

    Together with those of other processes they are one global batch.
    """
    sharding = _rows_sharding()
    if sharding is None:
        return batch
    return jax.make_array_from_process_local_data(sharding, batch)


def _own_rows(nest):
    """Takes the rows of this process out of global arrays."""
    sharding = _rows_sharding()
    if sharding is None:
        return nest
    return multihost_utils.global_array_to_host_local_array(
        nest, sharding.mesh, sharding.spec
    )


def _on_one(values):
    """Returns whole arrays as they lie on one device.

    Every process acts in environments of its own, and not all devices have to
    compute the same action.
    """
    if _rows_sharding() is None:
        return values
    return [value.addressable_data(0) for value in values]
