import numpy as np
import pytest
from helpers import to_numpy
from helpers import trace
from keras import ops

from keras_dreamer.symlog import symexp
from keras_dreamer.symlog import symlog

VALUES = np.random.default_rng(0).normal(size=(4, 5)).astype("float32") * 100


def call(function, x):
    return to_numpy(function(ops.convert_to_tensor(np.float32(x))))


def test_matches_hand_computed_values():
    # log(1 + e - 1) = 1, and the other way round exp(1) - 1 = 1.718282
    np.testing.assert_allclose(
        call(symlog, [np.e - 1, 1 - np.e]), [1.0, -1.0], rtol=1e-6
    )
    np.testing.assert_allclose(
        call(symexp, [1.0, -1.0]), [1.718282, -1.718282], rtol=1e-6
    )


def test_reference_values():
    expected = trace("symlog")
    squashed = call(symlog, expected["x"])
    np.testing.assert_allclose(squashed, expected["symlog"], rtol=1e-6)
    np.testing.assert_allclose(
        call(symexp, squashed), expected["symexp_of_symlog"], rtol=1e-6
    )


@pytest.mark.parametrize("function", [symlog, symexp])
def test_is_odd_and_close_to_the_identity_at_zero(function):
    assert call(function, 0.0) == 0.0
    np.testing.assert_allclose(call(function, 1e-4), 1e-4, rtol=1e-3)
    x = VALUES / 100
    np.testing.assert_array_equal(call(function, -x), -call(function, x))


def test_inverse_of_each_other():
    x = np.float32([-4.8e8, -1e3, -1.0, -1e-3, 0.0, 1e-3, 1.0, 1e3, 4.8e8])
    np.testing.assert_allclose(call(symexp, call(symlog, x)), x, rtol=1e-5)


def test_matches_a_loop():
    expected = np.zeros_like(VALUES)
    for index in np.ndindex(*VALUES.shape):
        x = float(VALUES[index])
        expected[index] = np.log(1 + x) if x > 0 else -np.log(1 - x)
    np.testing.assert_allclose(call(symlog, VALUES), expected, rtol=1e-6)
    np.testing.assert_allclose(call(symexp, expected), VALUES, rtol=1e-5)
