import keras
import numpy as np
import numpy_reference as reference
from backend_tools import evaluate
from helpers import to_numpy
from keras import ops
from layer_checks import check_layer
from layer_checks import numpy_weights
from layer_checks import randomize

from keras_dreamer.layers import ContinueHead

X = np.random.default_rng(0).normal(size=(4, 3, 5)).astype("float32")


def test_matches_hand_computed_values():
    # Dense: 2 * 3 - 2 = 4, norm: 4 / sqrt(16 + 1e-4) = 1, SiLU: sigmoid(1)
    # = 0.731057. Output: 0.731057 * 2 - 1 = 0.462114
    head = ContinueHead(1, 1)
    head.build((None, 1))
    values = ([[3.0]], [-2.0], [1.0], [[2.0]], [-1.0])
    names = head.named_weights()
    assert list(names) == [
        "mlp/linear0/kernel",
        "mlp/linear0/bias",
        "mlp/norm0/scale",
        "head/logit/kernel",
        "head/logit/bias",
    ]
    for weight, value in zip(names.values(), values, strict=True):
        weight.assign(value)
    logit = head(ops.convert_to_tensor([[2.0]]))
    np.testing.assert_allclose(to_numpy(logit), [0.462114], rtol=1e-4)


def test_matches_a_loop():
    head = ContinueHead(2, 8)
    head.build(X.shape)
    randomize(head)
    weights, expected = numpy_weights(head), np.zeros((4, 3))
    for i in np.ndindex(4, 3):
        hidden = reference.mlp(weights, X[i], 2)
        expected[i] = reference.dense(weights, "head/logit", hidden)[0]
    np.testing.assert_allclose(
        evaluate(head, X), expected, rtol=1e-4, atol=1e-6
    )


def test_initial_weights():
    # The output has scale 1: 1 / sqrt(1024) = 0.03125
    head = ContinueHead(1, 1024, seed=0)
    head.build((None, 16))
    weights = numpy_weights(head)
    np.testing.assert_allclose(
        weights["mlp/linear0/kernel"].std(), 0.25, rtol=0.03
    )
    np.testing.assert_allclose(
        weights["head/logit/kernel"].std(), 0.03125, rtol=0.1
    )
    np.testing.assert_array_equal(weights["head/logit/bias"], 0.0)


def test_keras_conventions(tmp_path):
    keras.config.set_dtype_policy("mixed_bfloat16")
    head = ContinueHead(1, 8, seed=1)
    check_layer(head, ops.convert_to_tensor(X), tmp_path)
    assert head(X).shape == (4, 3)
    assert head.compute_output_shape((None, 3, 5)) == (None, 3)
