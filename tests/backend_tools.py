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

        return jax.jit(function)
    if BACKEND == "tensorflow":
        import tensorflow as tf

        return tf.function(function, jit_compile=True, autograph=False)
    return function


def evaluate(function, *arrays):
    """Returns the nest that `function` makes of arrays, as NumPy arrays.

    Floats become float32. On jax it is compiled as a whole, which takes less
    time than compiling its operations one by one.
    """
    tensors = [
        ops.convert_to_tensor(x.astype("float32") if x.dtype.kind == "f" else x)
        for x in map(np.asarray, arrays)
    ]
    function = compiled(function) if BACKEND == "jax" else function
    return keras.tree.map_structure(to_numpy, function(*tensors))


def gradients(function, *arrays):
    """Returns the gradients of a scalar function as NumPy arrays."""
    tensors = [ops.convert_to_tensor(np.asarray(x)) for x in arrays]
    if BACKEND == "jax":
        import jax

        gradient = jax.grad(function, tuple(range(len(tensors))))
        found = jax.jit(gradient)(*tensors)  # Faster than many small ops.
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
