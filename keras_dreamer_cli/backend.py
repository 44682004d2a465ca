"""Chooses Keras's backend, before Keras is imported."""

import importlib.util
import os
import sys

BACKENDS = ("jax", "tensorflow", "torch")


def choose_backend(name, preferred=None):
    """Sets `KERAS_BACKEND` for this process.

    Args:
        name: str of `--backend`, or `None`: then `KERAS_BACKEND` stays, or
            the first backend that is installed is taken.
        preferred: str, the backend to look for first, or `None`.

    Returns:
        str, the backend.
    """
    given = os.environ.get("KERAS_BACKEND") or None
    if name and given and name != given:
        raise ValueError(
            "`--backend` and KERAS_BACKEND must agree. Received: --backend "
            f"{name}, KERAS_BACKEND={given}. Leave one of them out."
        )
    chosen = name or given or _installed(preferred)
    os.environ["KERAS_BACKEND"] = chosen
    if "keras" in sys.modules and _loaded() != chosen:
        raise ValueError(
            "The backend must be chosen before Keras is imported. Received: "
            f"{chosen}, but this process runs on {_loaded()}. Start a new one."
        )
    return chosen


def _loaded():
    return sys.modules["keras"].backend.backend()


def _installed(preferred):
    for name in (preferred, *BACKENDS):
        if name and importlib.util.find_spec(name):
            return name
    raise ValueError(
        "Keras needs a backend: JAX, TensorFlow or PyTorch. Received: none is "
        'installed. Install one, for example pip install "keras-dreamer[jax]"'
    )
