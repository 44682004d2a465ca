import keras
import numpy as np
import numpy_reference as reference
import pytest
from backend_tools import evaluate
from helpers import to_numpy
from keras import ops
from layer_checks import check_layer
from layer_checks import numpy_weights
from layer_checks import randomize

from keras_dreamer.layers import MLP
from keras_dreamer.layers.mlp import linear

X = np.random.default_rng(0).normal(size=(4, 5)).astype("float32")


def test_matches_hand_computed_values():
    # Dense: 2 * 3 - 2 = 4. Norm of one feature: 4 / sqrt(16 + 1e-4) = 0.999997,
    # times the scale 0.5. SiLU: 0.5 * sigmoid(0.5) = 0.311229
    mlp = MLP(1, 1)
    mlp.build((None, 1))
    for weight, value in zip(
        mlp.weights, ([[3.0]], [-2.0], [0.5]), strict=True
    ):
        weight.assign(value)
    y = mlp(ops.convert_to_tensor([[2.0]]))
    np.testing.assert_allclose(to_numpy(y), [[0.311229]], rtol=1e-4)


def test_matches_a_loop():
    mlp = MLP(3, 8)
    mlp.build(X.shape)
    randomize(mlp)
    weights = numpy_weights(mlp)
    expected = [reference.mlp(weights, x, 3, "linear{}", "norm{}") for x in X]
    np.testing.assert_allclose(evaluate(mlp, X), expected, rtol=1e-4, atol=1e-6)


def test_names_of_the_reference():
    mlp = MLP(2, 8, dense_name="mlp{}", norm_name="mlp{}norm")
    mlp.build((None, 5))
    shapes = {k: tuple(v.shape) for k, v in mlp.named_weights().items()}
    assert shapes == {
        "mlp0/kernel": (5, 8),
        "mlp0/bias": (8,),
        "mlp0norm/scale": (8,),
        "mlp1/kernel": (8, 8),
        "mlp1/bias": (8,),
        "mlp1norm/scale": (8,),
    }


def test_initial_weights():
    # Kernels 1 / sqrt(fan-in) whatever the layer, biases 0, scales 1.
    mlp = MLP(2, 256, seed=0)
    mlp.build((None, 64))
    weights = numpy_weights(mlp)
    np.testing.assert_allclose(
        weights["linear0/kernel"].std(), 0.125, rtol=0.02
    )
    np.testing.assert_allclose(
        weights["linear1/kernel"].std(), 0.0625, rtol=0.02
    )
    for index in range(2):
        np.testing.assert_array_equal(weights[f"linear{index}/bias"], 0.0)
        np.testing.assert_array_equal(weights[f"norm{index}/scale"], 1.0)


def test_layers_of_one_seed_differ():
    mlp = MLP(3, 4, seed=0)
    mlp.build((None, 4))
    kernels = [v for k, v in numpy_weights(mlp).items() if "kernel" in k]
    assert (kernels[0] != kernels[1]).all() and (kernels[1] != kernels[2]).all()


def test_keras_conventions(tmp_path):
    keras.config.set_dtype_policy("mixed_bfloat16")
    mlp = MLP(2, 8, seed=1)
    check_layer(mlp, ops.convert_to_tensor(X), tmp_path)
    assert {w.dtype for w in mlp.weights} == {"float32"}
    assert "bfloat16" in str(mlp(X).dtype)
    assert mlp.compute_output_shape((None, 3, 5)) == (None, 3, 8)


def test_needs_a_layer():
    with pytest.raises(ValueError, match=r"at least 1.*layers=0. Leave"):
        MLP(0, 8)


@pytest.mark.parametrize("outscale", [1.0, 0.01, 0.0])
def test_linear(outscale):
    layer = linear(200, outscale, seed=0)
    layer.build((None, 100))
    np.testing.assert_allclose(
        to_numpy(layer.kernel).std(), 0.1 * outscale, rtol=0.02
    )
    np.testing.assert_array_equal(to_numpy(layer.bias), np.zeros(200))
