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

from keras_dreamer.layers import TwoHotHead
from keras_dreamer.losses import symexp_bins

X = np.random.default_rng(0).normal(size=(4, 5)).astype("float32")


def test_matches_hand_computed_values():
    # With zero hidden units the logits are the bias: probabilities 1/4, 1/4
    # and 1/2 on the bins -b, 0, b with b = e^20 - 1: mean (1/2 - 1/4) b.
    head = TwoHotHead(1, 4, bins=3)
    head.build((None, 5))
    head.output_layer.bias.assign([0.0, 0.0, np.log(2.0)])
    mean = head.distribution(head(X)).mean()
    np.testing.assert_allclose(to_numpy(mean), 0.25 * 485165194.4, rtol=1e-6)


def test_matches_a_loop():
    head = TwoHotHead(2, 8, bins=5)
    head.build(X.shape)
    randomize(head)
    weights = numpy_weights(head)
    expected = [
        reference.dense(weights, "head/logits", reference.mlp(weights, x, 2))
        for x in X
    ]
    np.testing.assert_allclose(
        evaluate(head, X), expected, rtol=1e-4, atol=1e-6
    )


def test_initial_predictions_are_exactly_zero():
    head = TwoHotHead(2, 8)
    head.build((None, 5))
    assert head.distribution(head(X)).mean().shape == (4,)
    np.testing.assert_array_equal(
        to_numpy(head.distribution(head(X)).mean()), np.zeros(4)
    )
    weights = numpy_weights(head)
    assert weights["head/logits/kernel"].shape == (8, 255)
    np.testing.assert_array_equal(weights["head/logits/kernel"], 0.0)
    np.testing.assert_array_equal(weights["head/logits/bias"], 0.0)


def test_outscale_reaches_only_the_output():
    head = TwoHotHead(1, 64, outscale=0.5, seed=0)
    head.build((None, 64))
    weights = numpy_weights(head)
    # 1 / sqrt(64) = 0.125
    np.testing.assert_allclose(
        weights["mlp/linear0/kernel"].std(), 0.125, rtol=0.03
    )
    np.testing.assert_allclose(
        weights["head/logits/kernel"].std(), 0.0625, rtol=0.03
    )


def test_distribution_has_the_symexp_bins():
    head = TwoHotHead(1, 4, bins=7)
    bins = head.distribution(ops.zeros((2, 7))).bins
    np.testing.assert_array_equal(to_numpy(bins), symexp_bins(7))


def test_keras_conventions(tmp_path):
    keras.config.set_dtype_policy("mixed_bfloat16")
    head = TwoHotHead(1, 8, bins=5, outscale=1.0, seed=1)
    check_layer(head, ops.convert_to_tensor(X), tmp_path)
    assert head.compute_output_shape((None, 3, 5)) == (None, 3, 5)
    value = head.distribution(head(X))
    assert "float32" in str(value.mean().dtype)
    assert "float32" in str(value.loss(ops.ones((4,))).dtype)


def test_bins_must_be_odd():
    with pytest.raises(ValueError, match=r"must be odd.*count=4. Use count=5"):
        TwoHotHead(1, 8, bins=4)
