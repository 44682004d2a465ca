"""Measuring on TensorFlow."""

import tensorflow as tf

from benchmarks.backend.parts import compiled_breakdown as breakdown
from benchmarks.backend.parts import compiled_parts
from benchmarks.hlo import count_kernels

__all__ = ["DEVICE", "Step", "breakdown", "device_peak", "kernels", "parts"]

_GPUS = tf.config.list_physical_devices("GPU")
DEVICE = (
    tf.config.experimental.get_device_details(_GPUS[0]).get("device_name")
    if _GPUS
    else "cpu"
)


def wait(nest):
    tf.test.experimental.sync_devices()


@tf.function(autograph=False)
def product(a, b):
    return a @ b


def device_peak():
    if not _GPUS:
        return None
    return tf.config.experimental.get_memory_info("GPU:0")["peak"]


class Step:
    """The compiled step of `fit`."""

    def __init__(self, model):
        model.make_train_function()
        self.model = model

    def __call__(self, batch):
        logs = self.model.train_function(iter([(batch,)]))
        wait(logs)
        return logs

    def close(self):
        pass


def kernels(model, batch):
    """Compiles the step once more and counts; XLA only."""
    if not model.jit_compile:
        return None
    step = tf.function(model.train_step, jit_compile=True, autograph=False)
    text = step.experimental_get_compiler_ir((_tensors(batch),))
    return count_kernels(text(stage="optimized_hlo"))


def parts(model, batch):
    return compiled_parts(model, _tensors(batch), _compiled, _gradient, wait)


def _tensors(batch):
    return tf.nest.map_structure(tf.convert_to_tensor, batch)


def _compiled(model, function):
    return tf.function(function, jit_compile=model.jit_compile, autograph=False)


def _gradient(model, function):
    weights = [weight.value for weight in model.trainable_variables]

    def run(*args):
        with tf.GradientTape() as tape:
            loss, others = function(*args)
        return loss, others, tape.gradient(loss, weights)

    return _compiled(model, run)
