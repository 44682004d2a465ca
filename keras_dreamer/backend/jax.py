"""JAX: stateless training step, jitted with donated state."""

import jax
import keras
import numpy as np

from keras_dreamer.backend.exchange import run_step


def on_cpu():
    """Tells whether computations run on the CPU."""
    return jax.default_backend() == "cpu"


def as_numpy(tensor):
    """Returns an array to be read; on the CPU it is the tensor's memory."""
    return np.asarray(tensor)


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
        trainable, optimizer = self.optimizer.stateless_apply(
            optimizer, gradients, trainable
        )
        scope = keras.StatelessScope(
            zip(self.metrics_variables, metrics, strict=True)
        )
        with scope:
            logs = self.track_update(update)
        metrics = [scope.get_current_value(v) for v in self.metrics_variables]
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
                logs, exchange.state = inner(state, iter(((batch,),)))
                return logs

            return run_step(exchange, iterator, call), exchange.state

        self.train_function = step

    def compile_function(self, function, variables):
        """Returns `function` compiled, reading the newest `variables`."""

        @jax.jit
        def run(values, *args):
            with keras.StatelessScope(zip(variables, values, strict=True)):
                return function(*args)

        return lambda *args: run(self.newest(variables), *args)

    def newest(self, variables):
        """Returns the values of variables, also while `fit` runs."""
        if self._jax_state_synced or self.exchange.state is None:
            return [v.value for v in variables]
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
        self._write(
            [count, *targets],
            _blend(*map(self.newest, ([count], targets, sources)), rates),
        )

    def _write(self, variables, values):
        if self._jax_state_synced or self.exchange.state is None:
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


@jax.jit
def _blend(count, targets, sources, rates):
    (count,) = count
    rate = jax.numpy.where(count == 0, *rates)
    blended = [
        rate * source + (1 - rate) * target
        for target, source in zip(targets, sources, strict=True)
    ]
    return [count + 1, *blended]
