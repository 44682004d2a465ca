"""Compilation and gradients on the active backend."""

import keras
import numpy as np
from helpers import to_numpy
from keras import ops

BACKEND = keras.backend.backend()


def compiled(function):
    """Returns `function` compiled by XLA; as it is on torch."""
    if BACKEND == "jax":
        import jax

        # A function of its own: jax remembers what it compiled, with the
        # weights of that time.
        return jax.jit(lambda *args: function(*args))
    if BACKEND == "tensorflow":
        import tensorflow as tf

        return tf.function(function, jit_compile=True, autograph=False)
    return function


def fast(function):
    """Returns `function`, compiled as a whole on jax.

    That takes less time than compiling its operations one by one.
    """
    if BACKEND != "jax":
        return function
    import jax

    quick = {"xla_backend_optimization_level": 0}
    return jax.jit(lambda *args: function(*args), compiler_options=quick)


def evaluate(function, *arrays):
    """Returns the nest that `function` makes of arrays, as NumPy arrays.

    Floats become float32.
    """
    tensors = [
        ops.convert_to_tensor(x.astype("float32") if x.dtype.kind == "f" else x)
        for x in map(np.asarray, arrays)
    ]
    return keras.tree.map_structure(to_numpy, fast(function)(*tensors))


def gradients(function, *arrays):
    """Returns the gradients of a scalar function as NumPy arrays."""
    tensors = [ops.convert_to_tensor(np.asarray(x)) for x in arrays]
    if BACKEND == "jax":
        import jax

        gradient = jax.grad(function, tuple(range(len(tensors))))
        found = fast(gradient)(*tensors)
    elif BACKEND == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            tape.watch(tensors)
            result = function(*tensors)
        found = tape.gradient(result, tensors, unconnected_gradients="zero")
    else:
        import torch

        tensors = [x.detach().requires_grad_() for x in tensors]
        result = function(*tensors)
        if not result.requires_grad:
            return [np.zeros_like(x) for x in arrays]
        found = torch.autograd.grad(
            result, tensors, allow_unused=True, materialize_grads=True
        )
    return [to_numpy(x) for x in found]
