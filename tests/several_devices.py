"""Trains the same agent on one device and on several; run as a program.

JAX counts its devices when it starts, so that the tests run this file in
processes of its own, with virtual devices:

    python several_devices.py FOLDER                    1, 2 and 8 devices
    python several_devices.py FOLDER ADDRESS PROCESS    one of two hosts
"""

import pathlib
import sys

import agents
import jax
import keras
import numpy as np

from keras_dreamer.backend import jax as jax_backend
from keras_dreamer.models import learning

UPDATES = 3
ROWS = 8
FIELDS = {
    **agents.SHALLOW,
    "batch_size": ROWS,
    "batch_length": 4,
    "imag_length": 3,
    "lr": 1e-4,  # Rounding noise becomes steps of this size.
    "warmup": 0,
    "retnorm_rate": 0.5,
}


class Written:
    """Stands in for the replay: remembers what is written back."""

    def update(self, step_id, latents):
        self.step_id = step_id
        self.latents = latents


class Acting(keras.callbacks.Callback):
    """Acts after every update."""

    def __init__(self):
        super().__init__()
        self.deter = []

    def on_train_batch_end(self, batch, logs=None):
        observation = np.linspace(-1, 1, 9, dtype="float32").reshape(3, 3)
        _, state = self._model.act(observation, deterministic=True)
        self.deter.append(state["deter"])


def watch_rows():
    """Returns a list that is told how the rows of the actor are spread."""
    loss, seen = learning._policy_loss, []

    def watched(nets, tensors, rows, config):
        jax.debug.inspect_array_sharding(rows["deter"], callback=seen.append)
        return loss(nets, tensors, rows, config)

    learning._policy_loss = watched
    return seen


def make(rows=slice(None)):
    """Returns an agent and a dataset that serves some rows of one batch."""
    model = agents.make_random_agent(
        agents.numbers(3), agents.bounded(2), **FIELDS
    )
    model.compile()
    batch = agents.random_batch(model, batch_size=ROWS)
    batch["step_id"] = np.arange(5 * ROWS).reshape(ROWS, 5)
    dataset = agents.FixedBatches(
        keras.tree.map_structure(lambda x: x[rows], batch)
    )
    dataset.replay = Written()
    return model, dataset


def train(file, rows=slice(None)):
    """Saves what an agent does, as arrays and as a model."""
    model, dataset = make(rows)
    acting, spread = Acting(), watch_rows()
    logs = model.fit(dataset, epochs=UPDATES, callbacks=[acting], verbose=0)
    model.save(file.with_suffix(".keras"))
    assert len(spread) == 1  # One program serves all updates.
    total = ROWS * FIELDS["batch_length"] * FIELDS["imag_length"]
    np.savez(
        file,
        **{f"logs/{name}": values for name, values in logs.history.items()},
        **{f"weights/{k}": w for k, w in model.official_weights().items()},
        **{f"latents/{k}": x for k, x in dataset.replay.latents.items()},
        step_id=dataset.replay.step_id,
        acting=acting.deter,
        rows=spread[0].shard_shape((total, 1))[0],
    )


def one_host(folder):
    loss, on_cpu = learning._policy_loss, jax_backend.on_cpu
    devices = keras.distribution.list_devices()
    train(folder / "1.npz")
    for count in (2, 8):
        learning._policy_loss = loss
        # Eight devices learn from all steps at once, as accelerators do.
        jax_backend.on_cpu = on_cpu if count == 2 else lambda: False
        keras.distribution.set_distribution(
            keras.distribution.DataParallel(devices=devices[:count])
        )
        train(folder / f"{count}.npz")
    model, dataset = make(slice(6))
    try:
        model.fit(dataset, verbose=0)
    except ValueError as error:
        (folder / "error.txt").write_text(str(error))


def one_of_two_hosts(folder, address, process):
    keras.distribution.initialize(address, 2, process)
    keras.distribution.set_distribution(
        keras.distribution.DataParallel(auto_shard_dataset=False)
    )
    half = ROWS // 2
    rows = slice(process * half, (process + 1) * half)
    train(folder / f"host{process}.npz", rows)


if __name__ == "__main__":
    folder, *host = sys.argv[1:]
    with agents.quick_backend():
        if host:
            one_of_two_hosts(pathlib.Path(folder), host[0], int(host[1]))
        else:
            one_host(pathlib.Path(folder))
