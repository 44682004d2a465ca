"""What Keras asks of every layer, checked in one call."""

import json

import keras
import numpy as np
from backend_tools import fast
from helpers import to_numpy
from keras import ops


def check_layer(layer, inputs, path):
    """Checks shapes, config, symbolic inputs, `predict` and files.

    Args:
        layer: unbuilt layer.
        inputs: tensor, dict of tensors, or list of tensors for a layer with
            several arguments; the batch axis comes first.
        path: folder for the file.
    """
    check_config(layer)
    symbols = symbols_of(inputs)
    model = keras.Model(symbols, call(layer, symbols))
    outputs = fast(lambda inputs: call(layer, inputs))(inputs)
    check_specs(model.output, outputs)
    file = path / "model.keras"
    model.save(file)
    copy = keras.saving.load_model(file)
    rounding = 1e-5 if layer.compute_dtype == "float32" else 2**-5
    assert_same(copy.predict(inputs, verbose=0), outputs, rounding)


def call(layer, inputs):
    return layer(*inputs) if isinstance(inputs, list) else layer(inputs)


def symbols_of(inputs):
    if isinstance(inputs, dict):
        return {key: symbol(x, key) for key, x in inputs.items()}
    return keras.tree.map_structure(symbol, inputs)


def symbol(x, name=None):
    shape = (None, *x.shape[1:])
    return keras.Input(batch_shape=shape, dtype=dtype_of(x), name=name)


def dtype_of(x):
    return keras.backend.standardize_dtype(x.dtype)


def check_config(layer):
    config = layer.get_config()
    text = json.dumps(config)
    copy = type(layer).from_config(json.loads(text))
    assert json.dumps(copy.get_config()) == text


def check_specs(specs, outputs):
    """Compares what Keras was told with what came out."""
    specs, outputs = keras.tree.flatten(specs), keras.tree.flatten(outputs)
    for spec, output in zip(specs, outputs, strict=True):
        assert spec.shape == (None, *output.shape[1:])
        assert spec.dtype == dtype_of(output)


def assert_same(actual, expected, tolerance=0.0):
    actual, expected = keras.tree.flatten(actual), keras.tree.flatten(expected)
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(
            as_float32(one), as_float32(other), tolerance, tolerance
        )


def as_float32(x):
    return to_numpy(ops.cast(ops.convert_to_tensor(x), "float32"))


def randomize(layer, seed=0):
    """Sets random weights, biases and norm scales."""
    rng = np.random.default_rng(seed)
    for weight in layer.weights:
        scale = 1.0 / np.sqrt(max(np.prod(weight.shape[:-1]), 1))
        noise = scale * rng.standard_normal(weight.shape)
        weight.assign((weight.name == "scale") + noise)


def numpy_weights(layer):
    """Returns `{official name: array}`."""
    return {
        name: to_numpy(weight) for name, weight in layer.named_weights().items()
    }
