"""`keras-dreamer info`: what to put into the report of a bug."""

import importlib.metadata
import os
import platform

import keras

from keras_dreamer import backend

_PACKAGES = (
    "keras-dreamer keras numpy gymnasium jax jaxlib tensorflow torch "
    "dm_control mujoco tensorboardX wandb"
).split()


def run(command):
    """Prints versions, backend and devices."""
    for name, value in facts().items():
        print(f"{name:16} {value}")


def facts():
    """Returns what is known of this machine, a dict of strings."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpus": str(os.cpu_count()),
        **{name: _version(name) for name in _PACKAGES},
        "backend": keras.backend.backend(),
        "dtype": keras.config.dtype_policy().name,
        "devices": devices(),
    }


def devices():
    """Returns the names of the devices that the backend sees."""
    try:
        return ", ".join(map(str, keras.distribution.list_devices()))
    except Exception:  # Keras lists none on PyTorch.
        return backend.device()


def _version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
