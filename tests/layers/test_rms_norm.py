import keras
import numpy as np
import pytest
from backend_tools import evaluate
from helpers import to_numpy
from keras import ops
from layer_checks import as_float32
from layer_checks import check_layer
from layer_checks import randomize

from keras_dreamer.layers import RMSNorm

X = np.random.default_rng(0).normal(size=(4, 3, 6)).astype("float32") * 3


def test_matches_hand_computed_values():
    # mean(3^2, 4^2) = 12.5: 3 / sqrt(12.5 + 3.5) * 2 = 1.5, 4 / 4 * 5 = 5
    norm = RMSNorm(epsilon=3.5)
    norm.build((None, 2))
    norm.scale.assign([2.0, 5.0])
    y = norm(ops.convert_to_tensor([[3.0, 4.0]]))
    np.testing.assert_allclose(to_numpy(y), [[1.5, 5.0]], rtol=1e-6)


def test_initial_scale_is_one_and_epsilon_that_of_the_reference():
    # x = 0.01: 0.01 / sqrt(1e-4 + 1e-4) = 0.7071068
    norm = RMSNorm()
    y = norm(ops.full((1, 4), 0.01))
    np.testing.assert_allclose(to_numpy(y), 0.7071068, rtol=1e-5)
    np.testing.assert_array_equal(to_numpy(norm.scale), np.ones(4))


def test_large_inputs_lose_their_scale():
    norm = RMSNorm()
    np.testing.assert_allclose(
        to_numpy(norm(X * 1e4)), to_numpy(norm(X * 1e3)), rtol=1e-5
    )


def test_matches_a_loop():
    norm = RMSNorm()
    norm.build(X.shape)
    randomize(norm)
    expected, scale = np.zeros_like(X), to_numpy(norm.scale)
    for i in np.ndindex(4, 3):
        expected[i] = X[i] / np.sqrt(np.mean(X[i] ** 2) + 1e-4) * scale
    np.testing.assert_allclose(evaluate(norm, X), expected, rtol=1e-5)


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_keras_conventions(policy, tmp_path):
    keras.config.set_dtype_policy(policy)
    check_layer(RMSNorm(), ops.convert_to_tensor(X), tmp_path)
    assert RMSNorm().compute_output_shape((None, 6)) == (None, 6)


def test_scale_and_statistics_are_float32_in_mixed_precision():
    keras.config.set_dtype_policy("mixed_bfloat16")
    norm = RMSNorm()
    norm.build((None, 256))
    randomize(norm)
    assert norm.scale.dtype == "float32"
    x = ops.cast(np.random.default_rng(1).normal(size=(64, 256)), "bfloat16")
    y = norm(x)
    assert "bfloat16" in str(y.dtype)
    x64, scale = np.float64(as_float32(x)), np.float64(to_numpy(norm.scale))
    mean = np.mean(x64**2, -1, keepdims=True)
    expected = ops.cast(x64 / np.sqrt(mean + 1e-4) * scale, "bfloat16")
    # Rounded once, at the end. Rounding the scale too would change a quarter
    # of the values, those in between are ties.
    differing = as_float32(y) != as_float32(expected)
    assert differing.mean() < 1e-3
