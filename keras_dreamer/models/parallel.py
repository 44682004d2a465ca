"""Updates on several devices, each with its share of the batch."""

import keras


def process_id():
    """Returns the number of this process among those that train together."""
    distribution = keras.distribution.distribution()
    return 0 if distribution is None else distribution.data_shard_id


def check_distribution(model, batch_size):
    """Refuses distributions that the agent cannot serve.

    Args:
        model: `Dreamer`.
        batch_size: `None` or int, windows that this process draws.
    """
    distribution = keras.distribution.distribution()
    if distribution is not None:
        _check_kind(distribution)
    mesh = getattr(distribution, "device_mesh", None)
    layout = getattr(model.retnorm_low, "_layout", None)
    if getattr(layout, "device_mesh", None) is not mesh:
        raise ValueError(
            "The model must be made under the distribution it is trained "
            f"under. Received: distribution={distribution}, and a model made "
            "under another one. Call keras.distribution.set_distribution "
            "first, then make and compile the model, or load it."
        )
    if distribution is not None and batch_size is not None:
        _check_batch_size(distribution, batch_size)


def _check_kind(distribution):
    backend = keras.backend.backend()
    if backend != "jax":
        raise ValueError(
            "Keras distributes over several devices on JAX alone; others "
            "ignore the distribution. Received: distribution="
            f"{distribution} on the backend {backend!r}. Set KERAS_BACKEND to "
            "'jax', or call keras.distribution.set_distribution(None)."
        )
    if not isinstance(distribution, keras.distribution.DataParallel):
        raise ValueError(
            "The agent's weights must be whole on every device. Received: "
            f"distribution={distribution}. Use "
            "keras.distribution.DataParallel."
        )


def _check_batch_size(distribution, batch_size):
    devices = distribution.device_mesh.devices.size
    own = devices // distribution.num_processes
    if batch_size % own:
        raise ValueError(
            "`batch_size` must be a multiple of the number of devices that "
            f"share the batch, {own}. Received: batch_size={batch_size}. The "
            f"next valid value is {batch_size + -batch_size % own}; or give "
            "keras.distribution.DataParallel(devices=...) fewer devices."
        )
