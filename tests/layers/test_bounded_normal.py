import keras
import numpy as np
import numpy_reference as reference
import pytest
from helpers import to_numpy
from helpers import trace
from keras import ops
from layer_checks import check_layer
from layer_checks import numpy_weights
from layer_checks import randomize

from keras_dreamer.layers import BoundedNormal

X = np.random.default_rng(0).normal(size=(4, 5)).astype("float32")


def test_matches_hand_computed_values():
    # tanh(0.5 * 2) = 0.761594; 0.5 * sigmoid(-1 * 2 + 2) + 0.5 = 0.75
    head = BoundedNormal((), minstd=0.5, maxstd=1.0)
    head.build((None, 1))
    values = ([[0.5]], [0.0], [[-1.0]], [0.0])
    for weight, value in zip(head.weights, values, strict=True):
        weight.assign(value)
    mean, std = head(ops.convert_to_tensor([[2.0]]))
    np.testing.assert_allclose(to_numpy(mean), [0.761594], rtol=1e-5)
    np.testing.assert_allclose(to_numpy(std), [0.75], rtol=1e-6)


def test_reference_values():
    expected = trace("bounded_normal")
    head = BoundedNormal((3,))
    head.build((None, 1))
    head.mean_layer.bias.assign(expected["mean_raw"])
    head.std_layer.bias.assign(expected["std_raw"])
    mean, std = head(ops.zeros((1, 1)))
    np.testing.assert_allclose(to_numpy(mean)[0], expected["mean"], rtol=1e-5)
    np.testing.assert_allclose(to_numpy(std)[0], expected["std"], rtol=1e-5)
    spread = head.distribution(mean, std)
    log_prob = spread.log_prob(ops.convert_to_tensor([expected["action"]]))
    np.testing.assert_allclose(
        to_numpy(log_prob), [sum(expected["logp"])], rtol=1e-5
    )
    np.testing.assert_allclose(
        to_numpy(spread.entropy()), [sum(expected["entropy"])], rtol=1e-5
    )


def test_initial_distribution():
    # 0.9 * sigmoid(2) + 0.1 = 0.892717
    mean, std = BoundedNormal((2,), outscale=0.0)(X)
    np.testing.assert_array_equal(to_numpy(mean), np.zeros((4, 2)))
    np.testing.assert_allclose(to_numpy(std), 0.892717, rtol=1e-5)


def test_limits():
    head = BoundedNormal((2,))
    head.build((None, 1))
    for layer in (head.mean_layer, head.std_layer):
        layer.bias.assign([-100.0, 100.0])
    mean, std = head(ops.zeros((1, 1)))
    np.testing.assert_allclose(to_numpy(mean), [[-1.0, 1.0]], rtol=1e-6)
    np.testing.assert_allclose(to_numpy(std), [[0.1, 1.0]], rtol=1e-6)


def test_matches_a_loop():
    head = BoundedNormal((2, 3), minstd=0.2, maxstd=2.0)
    head.build(X.shape)
    randomize(head)
    weights = numpy_weights(head)
    mean, std = map(to_numpy, head(X))
    for row, x in enumerate(X):
        raw = [reference.dense(weights, name, x) for name in ("mean", "stddev")]
        np.testing.assert_allclose(
            mean[row].ravel(), np.tanh(raw[0]), rtol=1e-4, atol=1e-6
        )
        np.testing.assert_allclose(
            std[row].ravel(),
            1.8 * reference.sigmoid(raw[1] + 2) + 0.2,
            rtol=1e-4,
        )


def test_initial_weights():
    # 0.01 / sqrt(100) = 0.001 for both kernels.
    head = BoundedNormal((300,), seed=0)
    head.build((None, 100))
    weights = numpy_weights(head)
    for name in ("mean", "stddev"):
        kernel = weights[f"{name}/kernel"]
        np.testing.assert_allclose(kernel.std(), 0.001, rtol=0.02)
        np.testing.assert_array_equal(weights[f"{name}/bias"], 0.0)
    assert (weights["mean/kernel"] != weights["stddev/kernel"]).all()


@pytest.mark.parametrize(
    "policy, shape", [("float32", ()), ("mixed_bfloat16", (2, 3))]
)
def test_keras_conventions(policy, shape, tmp_path):
    keras.config.set_dtype_policy(policy)
    head = BoundedNormal(shape, outscale=1.0, seed=1)
    check_layer(head, ops.convert_to_tensor(X), tmp_path)
    for x in head(X):
        assert x.shape == (4, *shape) and "float32" in str(x.dtype)
    assert head.compute_output_shape((None, 7, 5)) == 2 * ((None, 7, *shape),)
    assert head.distribution(*head(X)).entropy().shape == (4,)


@pytest.mark.parametrize("minstd, maxstd", [(0.0, 1.0), (2.0, 1.0)])
def test_widths_are_checked(minstd, maxstd):
    with pytest.raises(
        ValueError,
        match=rf"at most `maxstd`.*minstd={minstd}, maxstd={maxstd}.*0.1",
    ):
        BoundedNormal((2,), minstd, maxstd)
