"""What the measurements need of each Keras backend.

Each module offers the same names:

- `DEVICE`: name of the device that computes.
- `wait(nest)`: returns when the tensors are there.
- `product(a, b)`: matrix product.
- `device_peak()`: most bytes in use on an accelerator, or `None`.
- `Step(model)`: the compiled training step as a function of a batch.
- `parts(model, batch)`: function that times what `breakdown` needs.
- `breakdown(times)`: milliseconds of the parts of an update, from those
  times and that of the `update`.
- `kernels(model, batch)`: how many kernels an update starts.
"""

import keras

if keras.backend.backend() == "jax":
    from benchmarks.backend import jax as chosen
elif keras.backend.backend() == "tensorflow":
    from benchmarks.backend import tensorflow as chosen
else:
    from benchmarks.backend import torch as chosen

DEVICE = chosen.DEVICE
Step = chosen.Step
breakdown = chosen.breakdown
device_peak = chosen.device_peak
kernels = chosen.kernels
parts = chosen.parts
product = chosen.product
wait = chosen.wait

__all__ = [
    "DEVICE",
    "Step",
    "breakdown",
    "device_peak",
    "kernels",
    "parts",
    "product",
    "wait",
]
