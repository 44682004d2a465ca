"""Calls functions of a model's networks on a batch."""

import keras
from keras import ops

from keras_dreamer.models.batch import prepare_batch


def call(model, function, batch, *noise):
    """Calls `function(tensors, batch, *noise)`, compiled, without gradients.

    Args:
        model: `Dreamer`.
        function: function of the networks' weights, of the prepared batch and
            of the noise, which returns a nest of tensors.
        batch: what a `ReplayDataset` or `Replay.read` returns.
        *noise: nests of arrays.

    Returns:
        Nest of NumPy arrays.
    """
    names = "observation action reward is_first is_last is_terminal".split()
    names += ["context"] * (model.config.replay_context > 0)

    def run(batch, noise):
        # PyTorch does not mix its tensors with NumPy's arrays.
        noise = keras.tree.map_structure(
            lambda x: None if x is None else ops.convert_to_tensor(x), noise
        )
        tensors = model.networks.tensors(stop_gradient=True)
        return function(tensors, prepare_batch(model, batch), *noise)

    run = model.compile_function(run, model.networks.weights)
    batch = {name: batch[name] for name in names if name in batch}
    return keras.tree.map_structure(ops.convert_to_numpy, run(batch, noise))
