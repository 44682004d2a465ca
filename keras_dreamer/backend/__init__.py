"""What differs between the Keras backends; the only backend imports.

Each module offers the same names:

- `configure(cache)`: settings of the process, see `configure_runtime`.
- `device()`: name of the device that computes.
- `blocks_apart()`: whether block layers are one product a block.
- `on_cpu()`: whether computations run on the CPU.
- `accumulate(function, tensors, inputs)`: sum of a loss over the first axis.
- `as_numpy(tensor)`: an array to be read, without a copy where possible.
- `normal(shape, seed)`, `uniform(shape, seed)`: float32 random numbers of a
  `keras.random.SeedGenerator`.
- `scan(step, carry, inputs, length)`: loop with gradients.
- `scan_layers(step, layers, carry, inputs, length)`: the same, with layers
  whose weights have gradients.
- `matmul(x, kernel)`: product with a kernel, one of `scan_layers` too.
- `outer(a, b)`: sum of the outer products of rows.
- `LaPropUpdate`: mixin of the optimizer with a faster update step.
- `Trainer`: mixin of the model with the training step and access to the
  newest variables while `fit` runs.
"""

import keras

if keras.backend.backend() == "jax":
    from keras_dreamer.backend.jax import LaPropUpdate
    from keras_dreamer.backend.jax import Trainer
    from keras_dreamer.backend.jax import accumulate
    from keras_dreamer.backend.jax import as_numpy
    from keras_dreamer.backend.jax import blocks_apart
    from keras_dreamer.backend.jax import configure
    from keras_dreamer.backend.jax import device
    from keras_dreamer.backend.jax import matmul
    from keras_dreamer.backend.jax import normal
    from keras_dreamer.backend.jax import on_cpu
    from keras_dreamer.backend.jax import outer
    from keras_dreamer.backend.jax import scan
    from keras_dreamer.backend.jax import scan_layers
    from keras_dreamer.backend.jax import uniform
elif keras.backend.backend() == "tensorflow":
    from keras_dreamer.backend.tensorflow import LaPropUpdate
    from keras_dreamer.backend.tensorflow import Trainer
    from keras_dreamer.backend.tensorflow import accumulate
    from keras_dreamer.backend.tensorflow import as_numpy
    from keras_dreamer.backend.tensorflow import blocks_apart
    from keras_dreamer.backend.tensorflow import configure
    from keras_dreamer.backend.tensorflow import device
    from keras_dreamer.backend.tensorflow import matmul
    from keras_dreamer.backend.tensorflow import normal
    from keras_dreamer.backend.tensorflow import on_cpu
    from keras_dreamer.backend.tensorflow import outer
    from keras_dreamer.backend.tensorflow import scan
    from keras_dreamer.backend.tensorflow import scan_layers
    from keras_dreamer.backend.tensorflow import uniform
elif keras.backend.backend() == "torch":
    from keras_dreamer.backend.torch import LaPropUpdate
    from keras_dreamer.backend.torch import Trainer
    from keras_dreamer.backend.torch import accumulate
    from keras_dreamer.backend.torch import as_numpy
    from keras_dreamer.backend.torch import blocks_apart
    from keras_dreamer.backend.torch import configure
    from keras_dreamer.backend.torch import device
    from keras_dreamer.backend.torch import matmul
    from keras_dreamer.backend.torch import normal
    from keras_dreamer.backend.torch import on_cpu
    from keras_dreamer.backend.torch import outer
    from keras_dreamer.backend.torch import scan
    from keras_dreamer.backend.torch import scan_layers
    from keras_dreamer.backend.torch import uniform
else:
    raise ValueError(
        "keras_dreamer trains on the Keras backends 'jax', 'tensorflow' and "
        f"'torch'. Received: backend={keras.backend.backend()!r}. Set the "
        "environment variable KERAS_BACKEND to one of them before Keras is "
        "imported."
    )

__all__ = [
    "LaPropUpdate",
    "Trainer",
    "accumulate",
    "as_numpy",
    "blocks_apart",
    "configure",
    "device",
    "matmul",
    "normal",
    "on_cpu",
    "outer",
    "scan",
    "scan_layers",
    "uniform",
]
