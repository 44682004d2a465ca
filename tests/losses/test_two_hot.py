import numpy as np
import pytest
from backend_tools import compiled
from backend_tools import evaluate
from backend_tools import gradients
from helpers import to_numpy
from helpers import trace
from keras import ops

from keras_dreamer.losses import TwoHot
from keras_dreamer.losses import symexp_bins

BINS = symexp_bins()
GOLDEN = trace("twohot")


def tensor(x):
    return ops.convert_to_tensor(np.asarray(x, "float32"))


def loss_and_mean(logits, targets, bins=BINS):
    def both(logits, targets):
        value = TwoHot(logits, bins)
        return value.loss(targets), value.mean()

    return evaluate(both, logits, targets)


def encode(target, bins):
    """Algorithm D's two-hot target of one number, in float64."""
    bins = np.float64(bins)
    count = len(bins)
    below = np.clip(np.sum(bins <= target) - 1, 0, count - 1)
    above = np.clip(count - np.sum(bins > target), 0, count - 1)
    encoded = np.zeros(count)
    if below == above:
        encoded[below] = 1.0
        return encoded
    gaps = abs(bins[below] - target), abs(bins[above] - target)
    encoded[below] = gaps[1] / sum(gaps)
    encoded[above] = gaps[0] / sum(gaps)
    return encoded


def test_bins_match_hand_computed_values():
    # symexp(-20, 0, 20) = -(e^20 - 1), 0, e^20 - 1 = 485165194.4
    np.testing.assert_allclose(
        symexp_bins(3), [-485165194.4, 0.0, 485165194.4], rtol=1e-7
    )
    # With five: symexp(10) = e^10 - 1 = 22025.4658
    np.testing.assert_allclose(symexp_bins(5)[3], 22025.4658, rtol=1e-6)


def test_bins_reference_values():
    expected = trace("bins")
    assert BINS.dtype == "float32" and len(BINS) == expected["n"]
    actual = [BINS[i] for i in (0, 254, 127, 128, 129, 200)]
    keys = ("first", "last", "mid", "b128", "b129", "b200")
    np.testing.assert_allclose(actual, [expected[k] for k in keys], rtol=1e-6)


def test_bins_are_sorted_and_exactly_antisymmetric():
    np.testing.assert_array_equal(BINS, -BINS[::-1])
    assert (np.diff(BINS) > 0).all()
    assert BINS[127] == 0.0


def test_bins_match_a_loop():
    for index in range(255):
        x = -20 + 40 * index / 254
        expected = np.sign(x) * np.expm1(abs(x))
        np.testing.assert_allclose(BINS[index], expected, rtol=1e-5)


def test_bins_need_a_middle():
    with pytest.raises(
        ValueError, match=r"must be odd.*count=254. Use count=255"
    ):
        symexp_bins(254)


def test_loss_matches_hand_computed_values():
    # Bins -1, 0, 2; target 0.5: a quarter of the way, weights 0.75 and 0.25.
    # log softmax of [0, log 2, 0] = [-log 4, log(1/2), -log 4]
    # loss = 0.75 * 0.693147 + 0.25 * 1.386294 = 0.866434
    bins = np.float32([-1.0, 0.0, 2.0])
    loss, _ = loss_and_mean([[0.0, np.log(2.0), 0.0]], [0.5], bins)
    np.testing.assert_allclose(loss, [0.866434], rtol=1e-6)


def test_mean_matches_hand_computed_values():
    # Bins -2, 0, 2 with probabilities 1/4, 1/4, 1/2: 0.25 * -2 + 0.5 * 2
    bins = np.float32([-2.0, 0.0, 2.0])
    _, mean = loss_and_mean([[0.0, 0.0, np.log(2.0)]], [0.0], bins)
    np.testing.assert_allclose(mean, [0.5], rtol=1e-6)


def test_reference_values():
    logits = 2 * np.sin(0.7 * np.arange(255))
    rows = np.broadcast_to(logits, (len(GOLDEN["targets"]), 255))
    loss, mean = loss_and_mean(rows, GOLDEN["targets"])
    np.testing.assert_allclose(loss, GOLDEN["loss"], rtol=2e-5)
    np.testing.assert_allclose(mean, GOLDEN["pred"], rtol=1e-4)


def test_equal_logits_cost_the_logarithm_of_the_bins():
    zeros = np.zeros((len(GOLDEN["targets"]), 255))
    loss, mean = loss_and_mean(zeros, GOLDEN["targets"])
    np.testing.assert_allclose(loss, GOLDEN["zero_logits_loss"], rtol=1e-6)
    np.testing.assert_array_equal(mean, GOLDEN["zero_logits_pred"])


def zero_predictions(x, kernel):
    """Of zero logits, and of an output layer that starts at zero."""
    zeros = ops.zeros((x.shape[0], 255), x.dtype)
    return (
        TwoHot(zeros, BINS).mean(),
        TwoHot(ops.matmul(x, kernel), BINS).mean(),
    )


@pytest.mark.parametrize(
    "rows, dtype",
    [
        *((rows, "float32") for rows in (1, 4, 16, 17, 64)),
        *((rows, "bfloat16") for rows in (1, 16, 17)),
    ],
)
def test_equal_logits_predict_exactly_zero(rows, dtype):
    x, kernel = ops.ones((rows, 8), dtype), ops.zeros((8, 255), dtype)
    for function in (zero_predictions, compiled(zero_predictions)):
        for prediction in function(x, kernel):
            assert "float32" in str(prediction.dtype)
            np.testing.assert_array_equal(to_numpy(prediction), np.zeros(rows))


VALUES = [0, 1e-3, -1e-3, 1, -1, 1e3, -1e3, 4.8e8, -4.8e8, 1e12, -1e12]


@pytest.mark.parametrize("compile", [False, True])
def test_encoding_and_decoding_returns_the_target(compile):
    """The mean of the two-hot encoded target is the target."""

    def fit(logits, targets):
        value = TwoHot(logits, BINS)
        return value.loss(targets), value.mean()

    fit = compiled(fit) if compile else fit
    encoded = np.stack([encode(value, BINS) for value in np.float32(VALUES)])
    # Logits of -1000 stand for no mass at all.
    logits = np.maximum(np.log(np.maximum(encoded, 1e-300)), -1000)
    loss, mean = map(to_numpy, fit(tensor(logits), tensor(VALUES)))
    expected = np.clip(VALUES, BINS[0], BINS[-1])
    np.testing.assert_allclose(mean, expected, rtol=1e-5)
    assert mean[0] == 0.0
    # The loss is least there: the entropy of the encoded target.
    entropy = -np.sum(encoded * np.log(encoded + 1e-300), -1)
    np.testing.assert_allclose(loss, entropy, rtol=1e-4, atol=1e-5)


def test_the_gradient_is_softmax_minus_the_encoded_target():
    logits = np.random.default_rng(0).normal(size=(len(VALUES), 255))
    logits = logits.astype("float32")
    (gradient,) = gradients(
        lambda x: ops.sum(TwoHot(x, BINS).loss(tensor(VALUES))), logits
    )
    softmax = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    encoded = np.stack([encode(value, BINS) for value in np.float32(VALUES)])
    np.testing.assert_allclose(gradient, softmax - encoded, atol=2e-6)


def test_exact_hits_and_targets_beyond_the_bins_use_one_bin():
    targets = np.float32([BINS[0], BINS[200], BINS[254], 1e12, -1e12, np.inf])
    bins = [0, 200, 254, 254, 0, 254]
    logits = np.random.default_rng(1).normal(size=(6, 255)).astype("float32")
    loss, _ = loss_and_mean(logits, targets)
    total = np.log(np.exp(logits).sum(-1))
    expected = total - logits[np.arange(6), bins]
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


def test_matches_a_loop():
    rng = np.random.default_rng(2)
    logits = rng.normal(size=(4, 3, 255)).astype("float32")
    targets = np.float32(np.sinh(rng.normal(size=(4, 3)) * 8))
    loss, mean = np.zeros((4, 3)), np.zeros((4, 3))
    for index in np.ndindex(4, 3):
        row = np.float64(logits[index])
        probs = np.exp(row) / np.exp(row).sum()
        loss[index] = -np.sum(encode(targets[index], BINS) * np.log(probs))
        mean[index] = np.sum(probs * np.float64(BINS))
    actual = loss_and_mean(logits, targets)
    np.testing.assert_allclose(actual[0], loss, rtol=1e-5)
    scale = np.abs(BINS).max()
    np.testing.assert_allclose(actual[1], mean, rtol=1e-4, atol=1e-7 * scale)


def test_large_logits_stay_finite():
    logits = np.zeros((2, 255))
    logits[:, 130] = [1e4, -1e4]
    loss, mean = loss_and_mean(logits, [0.0, 0.0])
    assert np.isfinite(loss).all() and np.isfinite(mean).all()
    np.testing.assert_allclose(mean[0], BINS[130], rtol=1e-6)
