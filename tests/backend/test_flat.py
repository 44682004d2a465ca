"""Sums of losses over an axis, on the active backend and by its own code."""

import keras
import numpy as np
import pytest
from backend_tools import evaluate
from backend_tools import gradients
from helpers import to_numpy
from keras import ops

from keras_dreamer import backend
from keras_dreamer.backend import flat

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 3, 2)).astype("float32")
W = RNG.normal(size=2).astype("float32")


@pytest.fixture(params=[backend, flat], ids=["backend", "flat"])
def accumulate(request):
    return request.param.accumulate


def loss(weights, rows):
    """A sum over rows, and an output for each."""
    y = ops.sum(rows["x"] * weights["w"], axis=-1)
    return ops.sum(y**2), {"cubes": y**3}


def test_loss_and_outputs_are_those_of_a_loop(accumulate):
    total, outputs = evaluate(
        lambda w, x: accumulate(loss, {"w": w}, {"x": x}), W, X
    )
    y = X @ W
    assert total == pytest.approx((y**2).sum(), rel=1e-5)
    np.testing.assert_allclose(outputs["cubes"], y**3, rtol=1e-4, atol=1e-6)


def test_gradient_of_the_loss(accumulate):
    inputs = {"x": ops.convert_to_tensor(X)}
    (gradient,) = gradients(
        lambda w: 3.0 * accumulate(loss, {"w": w}, inputs)[0], W
    )
    expected = 3 * 2 * np.einsum("ln,lni->i", X @ W, X)
    np.testing.assert_allclose(gradient, expected, rtol=1e-5)


def test_gradient_of_loss_and_outputs(accumulate):
    inputs = {"x": ops.convert_to_tensor(X)}
    weight = RNG.normal(size=(4, 3)).astype("float32")

    def combined(w):
        total, outputs = accumulate(loss, {"w": w}, inputs)
        weights = ops.convert_to_tensor(weight)
        return total + ops.sum(outputs["cubes"] * weights)

    (gradient,) = gradients(combined, W)
    y = X @ W
    expected = np.einsum("ln,lni->i", 2 * y + 3 * weight * y**2, X)
    np.testing.assert_allclose(gradient, expected, rtol=1e-4)


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        (1, X.reshape(-1, 2)),
        (2, X.reshape(-1, 2)),  # Three rows are not spread over two devices.
        (3, np.swapaxes(X, 0, 1).reshape(-1, 2)),
    ],
)
def test_the_rows_of_a_device_stay_together(devices, expected):
    names = [f"cpu:{index}" for index in range(devices)]
    mesh = keras.distribution.DeviceMesh((devices,), ["batch"], names)

    def give_back(weights, rows):
        np.testing.assert_array_equal(to_numpy(rows["x"]), expected)
        return ops.sum(rows["x"]), rows

    with keras.distribution.DataParallel(mesh).scope():
        inputs = {"x": ops.convert_to_tensor(X)}
        _, outputs = flat.accumulate(give_back, {}, inputs)
    np.testing.assert_array_equal(to_numpy(outputs["x"]), X)


def test_a_weight_that_an_output_does_not_need(accumulate):
    inputs = {"x": ops.convert_to_tensor(X)}

    def two(weights, rows):
        """A loss of one weight, an output of another."""
        first, second = (ops.sum(rows["x"] * w, axis=-1) for w in weights)
        return ops.sum(first), {"second": second}

    def combined(*weights):
        _, outputs = accumulate(two, list(weights), inputs)
        return ops.sum(outputs["second"])

    found = gradients(combined, W, W)
    np.testing.assert_array_equal(found[0], np.zeros(2))
    np.testing.assert_allclose(found[1], X.sum((0, 1)), rtol=1e-5)
