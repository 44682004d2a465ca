import keras
import numpy as np
import pytest
from backend_tools import evaluate
from helpers import to_numpy
from keras import ops
from layer_checks import assert_same
from layer_checks import check_layer
from layer_checks import randomize

from keras_dreamer.layers import BlockDense

X = np.random.default_rng(0).normal(size=(4, 3, 8)).astype("float32")


def test_matches_hand_computed_values():
    # Block 0: 1 * 2 + 10 = 12, block 1: 3 * 4 + 20 = 32
    layer = BlockDense(units=2, blocks=2)
    layer.build((None, 2))
    layer.kernel.assign([[[2.0]], [[4.0]]])
    layer.bias.assign([10.0, 20.0])
    y = layer(ops.convert_to_tensor([[1.0, 3.0]]))
    np.testing.assert_array_equal(to_numpy(y), [[12.0, 32.0]])


def test_one_block_is_a_dense_layer():
    layer, dense = BlockDense(6, 1), keras.layers.Dense(6)
    layer.build(X.shape)
    dense.build(X.shape)
    randomize(layer)
    dense.set_weights([to_numpy(layer.kernel)[0], to_numpy(layer.bias)])
    assert_same(layer(X), dense(X), 1e-5)


def test_matches_a_loop():
    layer = BlockDense(6, 2)
    layer.build(X.shape)
    randomize(layer)
    kernel, bias = map(to_numpy, (layer.kernel, layer.bias))
    expected = np.zeros((4, 3, 6))
    for row, step, block, unit in np.ndindex(4, 3, 2, 3):
        out = 3 * block + unit
        expected[row, step, out] = bias[out]
        for feature in range(4):
            x = X[row, step, 4 * block + feature]
            expected[row, step, out] += x * kernel[block, feature, unit]
    np.testing.assert_allclose(evaluate(layer, X), expected, rtol=1e-4)


def test_initial_weights():
    # The fan-in is the WHOLE input: 1 / sqrt(8 * 32) = 0.0625, not the block's
    # 1 / sqrt(32) = 0.177.
    layer = BlockDense(units=8 * 64, blocks=8, seed=0)
    layer.build((None, 8 * 32))
    kernel = to_numpy(layer.kernel)
    assert kernel.shape == (8, 32, 64)
    np.testing.assert_allclose(kernel.std(), 0.0625, rtol=0.02)
    np.testing.assert_array_equal(to_numpy(layer.bias), np.zeros(512))


def test_seed():
    kernels = []
    for seed in (1, 1, 2, None, None):
        layer = BlockDense(4, 2, seed=seed)
        layer.build((None, 4))
        kernels.append(to_numpy(layer.kernel))
    np.testing.assert_array_equal(kernels[0], kernels[1])
    for one, other in ((0, 2), (0, 3), (3, 4)):
        assert (kernels[one] != kernels[other]).all()


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_keras_conventions(policy, tmp_path):
    keras.config.set_dtype_policy(policy)
    layer = BlockDense(6, 2, seed=1)
    check_layer(layer, ops.convert_to_tensor(X), tmp_path)
    assert layer.kernel.dtype == layer.bias.dtype == "float32"
    assert layer(X).shape == (4, 3, 6)
    assert "bfloat16" in str(layer(X).dtype) or policy == "float32"
    assert layer.compute_output_shape((None, 8)) == (None, 6)


def test_units_must_be_a_multiple_of_the_blocks():
    with pytest.raises(
        ValueError, match=r"multiple of `blocks`.*units=7, blocks=2.*units=6"
    ):
        BlockDense(7, 2)


def test_features_must_be_a_multiple_of_the_blocks():
    with pytest.raises(
        ValueError, match=r"multiple of `blocks`.*features=7, blocks=2.*Pad"
    ):
        BlockDense(6, 2).build((None, 7))
