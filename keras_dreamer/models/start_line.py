"""The line that `fit` prints first: what runs, where, and how large it is."""

import math
import os

import keras

from keras_dreamer import backend
from keras_dreamer.callbacks.train_ratio import TrainRatio
from keras_dreamer.replay.replay import Replay


def start_line(model, dataset, callbacks=()):
    """Returns backend, device, dtype policy, size and predicted memory.

    Args:
        model: `Dreamer`.
        dataset: what `fit` trains on. A `ReplayDataset` adds the bytes of its
            replay, full or at the end of the run, whichever comes first.
        callbacks: list of callbacks; a `TrainRatio` may end the run.

    Returns:
        str, for example `jax on cpu (2 cores) | mixed_bfloat16 |
        686,123 parameters | replay up to 1.0 GB at 250,000 steps`.
    """
    count = sum(math.prod(w.shape) for w in model.trainable_variables)
    parts = [
        f"{keras.backend.backend()} on {_device()}",
        model.dtype_policy.name,
        f"{count:,} parameters",
    ]
    replay = getattr(dataset, "replay", None)
    if isinstance(replay, Replay):
        ratios = [c for c in callbacks if isinstance(c, TrainRatio)]
        budgets = [c.total_steps for c in ratios if c.total_steps]
        steps = min([replay.capacity, *budgets])
        size = _with_unit(replay.predicted_nbytes(steps))
        parts.append(f"replay up to {size} at {steps:,} steps")
    return " | ".join(parts)


def _device():
    name = backend.device()
    if name == "cpu":
        name = f"cpu ({os.cpu_count()} cores)"
    distribution = keras.distribution.distribution()
    if distribution is None:
        return name
    return f"{distribution.device_mesh.devices.size} x {name}"


def _with_unit(nbytes):
    for unit in ("bytes", "kB", "MB"):
        if nbytes < 1000:
            return f"{nbytes:.3g} {unit}"
        nbytes /= 1000
    return f"{nbytes:.1f} GB"
