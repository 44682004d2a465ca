"""TensorFlow: training step with a gradient tape, in one `tf.function`."""

import functools

import tensorflow as tf

from keras_dreamer.backend import flat
from keras_dreamer.backend.exchange import run_step
from keras_dreamer.backend.finite import measure
from keras_dreamer.backend.flat import LaPropUpdate as LaPropUpdate
from keras_dreamer.backend.flat import accumulate as accumulate
from keras_dreamer.backend.flat import matmul as matmul
from keras_dreamer.backend.flat import outer as outer

# `keras.random` lets the program choose the algorithm: 70 times slower.
_PHILOX = "philox"


def normal(shape, seed):
    """Draws normal float32 numbers by a `keras.random.SeedGenerator`."""
    return tf.random.stateless_normal(shape, seed.next(), alg=_PHILOX)


def uniform(shape, seed):
    """Draws float32 numbers in [0, 1) by a `keras.random.SeedGenerator`."""
    return tf.random.stateless_uniform(shape, seed.next(), alg=_PHILOX)


def on_cpu():
    """Tells whether computations run on the CPU."""
    return not tf.config.list_logical_devices("GPU")


def blocks_apart():
    """Tells whether block layers are faster as one product a block."""
    return on_cpu()


def configure(cache):
    """Sets the backend up; see `keras_dreamer.configure_runtime`."""
    del cache  # Nothing is kept.
    return on_cpu()


def as_numpy(tensor):
    """Returns an array to be read."""
    return tensor.numpy()


def device():
    """Returns the name of the device that computes, as "gpu:0 Tesla T4"."""
    if on_cpu():
        return "cpu"
    first = tf.config.list_physical_devices("GPU")[0]
    details = tf.config.experimental.get_device_details(first)
    return f"gpu:0 {details.get('device_name', '')}".strip()


def scan(step, carry, inputs, length):
    """Applies `step` to every entry of the first axis.

    `keras.ops.scan` loses outputs that are not shaped like the carry and has
    no gradient under XLA: it doesn't tell XLA the number of steps.

    Args:
        step: function `(carry, inputs_t) -> (carry, outputs_t)`.
        carry: nest of tensors.
        inputs: nest of `(length, ...)` tensors; `None` stays `None`.
        length: int.

    Returns:
        The last carry and the nest of `(length, ...)` outputs.
    """
    # Lists that shrink and grow at their ends: the gradient of a step adds or
    # takes one entry. That of a `TensorArray` copies all of it at every step.
    lists = [
        tf.raw_ops.TensorListFromTensor(
            tensor=tf.reverse(x, [0]), element_shape=x.shape[1:]
        )
        for x in _present(inputs)
    ]
    specs = _output_specs(step, carry, inputs)
    stacks = [
        tf.raw_ops.EmptyTensorList(
            element_shape=x.shape,
            max_num_elements=length,
            element_dtype=x.dtype,
        )
        for x in _present(specs)
    ]

    def body(index, carry, lists, stacks):
        popped = list(map(_pop, lists, _present(inputs)))
        carry, outputs = step(carry, _pack(inputs, [x for _, x in popped]))
        stacks = [
            tf.raw_ops.TensorListPushBack(input_handle=stack, tensor=x)
            for stack, x in zip(stacks, _present(outputs), strict=True)
        ]
        return index + 1, carry, [rest for rest, _ in popped], stacks

    _, carry, _, stacks = tf.while_loop(
        lambda index, *_: index < length,
        body,
        (0, carry, lists, stacks),
        maximum_iterations=length,
    )
    outputs = [
        tf.raw_ops.TensorListStack(
            input_handle=stack,
            element_shape=x.shape,
            element_dtype=x.dtype,
            num_elements=length,
        )
        for stack, x in zip(stacks, _present(specs), strict=True)
    ]
    return carry, _pack(specs, outputs)


scan_layers = functools.partial(flat.scan_layers, scan)


def _pop(entries, x):
    """Takes the last entry, shaped like those of `x`, from a list."""
    return tf.raw_ops.TensorListPopBack(
        input_handle=entries,
        element_shape=x.shape[1:],
        element_dtype=x.dtype,
    )


def _output_specs(step, carry, inputs):
    """Traces `step` once for the shapes and dtypes of its outputs."""

    @tf.function(autograph=False)
    def outputs():
        first = _pack(inputs, [x[0] for x in _present(inputs)])
        return step(carry, first)[1]

    return outputs.get_concrete_function().structured_outputs


def _present(nest):
    """Returns the leaves of a nest that are not `None`."""
    return [x for x in tf.nest.flatten(nest) if x is not None]


def _pack(nest, values):
    """Puts values in the place of the leaves that are not `None`."""
    values = iter(values)
    return tf.nest.map_structure(
        lambda x: None if x is None else next(values), nest
    )


class Trainer:
    """Training step and newest variables on TensorFlow."""

    def train_step(self, data):
        with tf.GradientTape() as tape:
            update = self.update_terms(data[0])
        weights = self.trainable_variables
        gradients = tape.gradient(update.total, [w.value for w in weights])
        finite, norms = measure(update.total, gradients, self.gradient_parts)

        def apply():
            self.optimizer.apply(gradients, weights)
            return finite

        tf.cond(finite, apply, lambda: finite)
        return self.track_update(update, finite, norms)

    def make_train_function(self, force=False):
        if self.train_function is not None and not force:
            return
        super().make_train_function(force)
        inner, exchange = self.train_function, self.exchange

        def step(iterator):
            return run_step(
                exchange, iterator, lambda batch: inner(iter(((batch,),)))
            )

        self.train_function = step

    def compile_function(self, function, variables):
        """Returns `function` compiled, reading the newest `variables`."""
        del variables  # Captured by the function itself.
        return tf.function(function, autograph=False)

    def newest(self, variables):
        """Returns the values of variables, also while `fit` runs."""
        return [v.value for v in variables]

    def blend(self, count, targets, sources, rates):
        """Moves variables towards others: an exponential average.

        Args:
            count: integer variable, how often this was done. It goes up.
            targets: list of variables.
            sources: list of variables.
            rates: pair of floats, for the first time and for all others.
        """
        values = map(self.newest, ([count], targets, sources))
        _blend(*values, [tf.constant(rate) for rate in rates])


@tf.function(autograph=False)
def _blend(count, targets, sources, rates):
    rate = tf.where(count[0] == 0, *rates)
    for target, source in zip(targets, sources, strict=True):
        target.assign(rate * source + (1 - rate) * target)
    count[0].assign_add(1)
