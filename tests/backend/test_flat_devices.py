import contextlib

import keras
import numpy as np
import pytest
from helpers import to_numpy
from keras import ops

from keras_dreamer.backend import flat

STEPS, ROWS = 3, 4
X = np.arange(STEPS * ROWS * 2, dtype="float32").reshape(STEPS, ROWS, 2)


def spread(devices):
    """Returns a scope in which batches are spread over so many devices."""
    if devices is None:
        return contextlib.nullcontext()
    names = [f"cpu:{index}" for index in range(devices)]
    mesh = keras.distribution.DeviceMesh((devices,), ["batch"], names)
    return keras.distribution.DataParallel(mesh).scope()


def accumulated(devices):
    """Returns loss, outputs and what the function was given."""
    seen = []

    def function(weight, rows):
        seen.append(to_numpy(rows["x"]))
        square = ops.square(rows["x"] * weight)
        return ops.sum(square), {"square": square, "sum": ops.sum(square, -1)}

    with spread(devices):
        weight = ops.convert_to_tensor(2.0)
        loss, outputs = flat.accumulate(
            function, weight, {"x": ops.convert_to_tensor(X)}
        )
    return to_numpy(loss), keras.tree.map_structure(to_numpy, outputs), seen


@pytest.mark.parametrize("devices", [None, 1, 2, 3, 4])
def test_sums_the_losses_and_keeps_the_axes(devices):
    loss, outputs, _ = accumulated(devices)
    np.testing.assert_allclose(loss, 4 * (X**2).sum())
    np.testing.assert_allclose(outputs["square"], 4 * X**2)
    np.testing.assert_allclose(outputs["sum"], 4 * (X**2).sum(-1))


def test_all_rows_come_at_once_step_by_step():
    _, _, (rows,) = accumulated(None)
    np.testing.assert_array_equal(rows, X.reshape(-1, 2))


def test_the_rows_of_a_device_stay_together():
    _, _, (rows,) = accumulated(2)
    own = [X[:, :2].reshape(-1, 2), X[:, 2:].reshape(-1, 2)]
    np.testing.assert_array_equal(rows, np.concatenate(own))
