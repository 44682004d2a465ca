import keras
import numpy as np
import numpy_reference as reference
import pytest
from helpers import to_numpy
from keras import ops
from layer_checks import check_layer
from layer_checks import numpy_weights
from layer_checks import randomize

from keras_dreamer.layers import CategoricalHead

X = np.random.default_rng(0).normal(size=(4, 5)).astype("float32")


def test_matches_hand_computed_values():
    # Logits [0, log 3] * 1: 0.9 * [1/4, 3/4] + 0.1 * [1/2, 1/2]
    # = [0.275, 0.725]
    head = CategoricalHead(2, unimix=0.1)
    head.build((None, 1))
    head.output_layer.kernel.assign([[0.0, np.log(3.0)]])
    logits = head(ops.ones((1, 1)))
    np.testing.assert_allclose(to_numpy(logits), [[0.0, 1.098612]], rtol=1e-6)
    np.testing.assert_allclose(
        to_numpy(head.distribution(logits).probs), [[0.275, 0.725]], rtol=1e-6
    )


def test_matches_a_loop():
    head = CategoricalHead([[3, 2], [1, 3]])
    head.build(X.shape)
    randomize(head)
    weights, logits = numpy_weights(head), to_numpy(head(X))
    assert logits.shape == (4, 2, 2, 3)
    for row, x in enumerate(X):
        expected = reference.dense(weights, "logits", x).reshape(2, 2, 3)
        np.testing.assert_allclose(logits[row], expected, rtol=1e-4, atol=1e-6)


def test_no_logits_mean_equal_chances_of_existing_classes():
    head = CategoricalHead([3, 2, 1], outscale=0.0)
    probs = to_numpy(head.distribution(head(X)).probs)
    expected = [[1 / 3, 1 / 3, 1 / 3], [1 / 2, 1 / 2, 0], [1, 0, 0]]
    np.testing.assert_allclose(probs[0], expected, rtol=1e-6)


def test_distribution_sums_over_the_variables():
    head = CategoricalHead([3, 2, 1], outscale=0.0)
    spread = head.distribution(head(X))
    # log 3 + log 2 + log 1 = log 6 = 1.791759
    np.testing.assert_allclose(to_numpy(spread.entropy()), 1.791759, rtol=1e-6)
    action = spread.sample(ops.full((4, 3), 0.9999))
    np.testing.assert_array_equal(to_numpy(action), 4 * [[2, 1, 0]])


def test_initial_weights():
    # 0.01 / sqrt(100) = 0.001
    head = CategoricalHead([100, 100], seed=0)
    head.build((None, 100))
    weights = numpy_weights(head)
    np.testing.assert_allclose(weights["logits/kernel"].std(), 0.001, rtol=0.02)
    np.testing.assert_array_equal(weights["logits/bias"], 0.0)


@pytest.mark.parametrize(
    "policy, sizes, shape",
    [("float32", 4, (4,)), ("mixed_bfloat16", [[3, 2]], (1, 2, 3))],
)
def test_keras_conventions(policy, sizes, shape, tmp_path):
    keras.config.set_dtype_policy(policy)
    head = CategoricalHead(sizes, outscale=1.0, seed=1)
    check_layer(head, ops.convert_to_tensor(X), tmp_path)
    assert head(X).shape == (4, *shape) and "float32" in str(head(X).dtype)
    assert head.compute_output_shape((None, 7, 5)) == (None, 7, *shape)


@pytest.mark.parametrize("sizes", [[], [3, 0]])
def test_sizes_are_checked(sizes):
    with pytest.raises(
        ValueError, match=r"at least one variable.*sizes=\[.*Remove empty"
    ):
        CategoricalHead(sizes)
