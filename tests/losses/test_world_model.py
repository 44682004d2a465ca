import numpy as np
import pytest
from backend_tools import evaluate
from backend_tools import gradients
from helpers import to_numpy
from helpers import trace
from keras import ops
from numpy_reference import softmax

from keras_dreamer.distributions import Categorical
from keras_dreamer.losses import binary_cross_entropy
from keras_dreamer.losses import categorical_nll
from keras_dreamer.losses import kl_losses
from keras_dreamer.losses import symlog_mse

RNG = np.random.default_rng(0)
POSTERIOR = RNG.normal(size=(5, 3, 4)).astype("float32")
PRIOR = RNG.normal(size=(5, 3, 4)).astype("float32")


def tensor(x, dtype="float32"):
    return ops.convert_to_tensor(np.asarray(x, dtype))


def test_symlog_mse_matches_hand_computed_values():
    # symlog(e - 1) = 1: (3 - 1)^2 + (0.5 - 0)^2 = 4.25, without a half
    loss = symlog_mse(tensor([[3.0, 0.5]]), tensor([[np.e - 1, 0.0]]), 1)
    np.testing.assert_allclose(to_numpy(loss), [4.25], rtol=1e-6)


def test_symlog_mse_is_zero_for_the_squashed_target():
    target = np.float32([1e6, -3.0, 0.0])
    squashed = np.sign(target) * np.log1p(np.abs(target))
    loss = symlog_mse(tensor(squashed), tensor(target), 0)
    np.testing.assert_allclose(to_numpy(loss), np.zeros(3), atol=1e-10)


@pytest.mark.parametrize("event_ndim", [0, 1, 2])
def test_symlog_mse_matches_a_loop(event_ndim):
    prediction, target = RNG.normal(size=(2, 4, 3, 2)) * 3
    expected = np.zeros((4, 3, 2)[: 3 - event_ndim])
    for index in np.ndindex(4, 3, 2):
        y = target[index]
        error = prediction[index] - np.sign(y) * np.log(1 + abs(y))
        expected[index[: 3 - event_ndim]] += error**2
    loss = symlog_mse(tensor(prediction), tensor(target), event_ndim)
    np.testing.assert_allclose(to_numpy(loss), expected, rtol=1e-5)


def test_symlog_mse_of_bfloat16_predictions_is_float32():
    loss = symlog_mse(tensor([[0.5]]) * 0 + 0.5, tensor([[1.0]]), 1)
    low = symlog_mse(ops.cast([[0.5]], "bfloat16"), tensor([[1.0]]), 1)
    assert "float32" in str(low.dtype)
    np.testing.assert_array_equal(to_numpy(low), to_numpy(loss))


def test_symlog_mse_of_a_missing_key_costs_nothing():
    prediction = np.float32([[1.0, 2.0], [3.0, 4.0]])
    target = np.float32([[0.5, -np.inf], [0.0, 0.0]])
    available = ops.convert_to_tensor(np.array([False, True]))
    # 3^2 + 4^2 = 25
    loss = symlog_mse(tensor(prediction), tensor(target), 1, available)
    np.testing.assert_array_equal(to_numpy(loss), [0.0, 25.0])
    (gradient,) = gradients(
        lambda x: ops.sum(symlog_mse(x, tensor(target), 1, available)),
        prediction,
    )
    np.testing.assert_array_equal(gradient, [[0.0, 0.0], [6.0, 8.0]])


def test_symlog_mse_passes_no_gradient_to_the_target():
    (gradient,) = gradients(
        lambda y: ops.sum(symlog_mse(tensor([[1.0, 2.0]]), y, 1)),
        np.float32([[0.5, 3.0]]),
    )
    np.testing.assert_array_equal(gradient, [[0.0, 0.0]])


def test_categorical_nll_matches_hand_computed_values():
    # softmax([0, log 3]) = [1/4, 3/4]: -log(3/4) - log(1/4) = 1.673976
    logits = np.log([[[1.0, 3.0], [1.0, 3.0]]])
    spread = Categorical(tensor(logits), event_ndim=1)
    loss = categorical_nll(spread, tensor([[1, 0]], "int32"))
    np.testing.assert_allclose(to_numpy(loss), [1.673976], rtol=1e-6)


def test_categorical_nll_of_equal_logits():
    spread = Categorical(tensor(np.zeros((2, 3, 4))), event_ndim=1)
    loss = categorical_nll(spread, tensor(np.ones((2, 3)), "int32"))
    np.testing.assert_allclose(to_numpy(loss), 3 * np.log(4.0), rtol=1e-6)


def test_categorical_nll_matches_a_loop():
    target = RNG.integers(0, 4, (5, 3))
    expected = np.zeros(5)
    for row, variable in np.ndindex(5, 3):
        probs = softmax(POSTERIOR[row, variable])
        expected[row] -= np.log(probs[target[row, variable]])
    spread = Categorical(tensor(POSTERIOR), event_ndim=1)
    loss = categorical_nll(spread, tensor(target, "int32"))
    np.testing.assert_allclose(to_numpy(loss), expected, rtol=1e-5)


def test_categorical_nll_of_a_missing_key_costs_nothing():
    target = np.array([[0, -1, 1], [-1, -1, -1], [1, 2, 0]], "int32")
    available = ops.convert_to_tensor(np.array([False, False, True]))

    def loss(logits):
        spread = Categorical(logits, event_ndim=1)
        return categorical_nll(spread, tensor(target, "int32"), available)

    values = evaluate(loss, POSTERIOR[:3])
    np.testing.assert_array_equal(values[:2], [0.0, 0.0])
    assert values[2] > 0
    (gradient,) = gradients(lambda x: ops.sum(loss(x)), POSTERIOR[:3])
    np.testing.assert_array_equal(gradient[:2], 0.0)
    assert np.isfinite(gradient).all() and np.abs(gradient[2]).max() > 0.1


def test_binary_cross_entropy_matches_hand_computed_values():
    # sigmoid(log 3) = 0.75: -(0.5 * log 0.75 + 0.5 * log 0.25) = 0.836988
    loss = binary_cross_entropy(tensor([np.log(3.0)]), tensor([0.5]))
    np.testing.assert_allclose(to_numpy(loss), [0.836988], rtol=1e-6)


def test_binary_cross_entropy_reference_values():
    expected = trace("binary")
    logit = tensor(expected["logit"])
    loss = binary_cross_entropy(logit, tensor(expected["target"]))
    np.testing.assert_allclose(to_numpy(loss), expected["loss"], rtol=1e-6)
    np.testing.assert_allclose(
        to_numpy(ops.sigmoid(logit)), expected["prob1"], rtol=1e-6
    )


def test_binary_cross_entropy_limits():
    # A sure and right prediction costs 0, a wrong one its logit.
    logit, target = tensor([200.0, -200.0, 200.0]), tensor([1.0, 0.0, 0.0])
    loss = to_numpy(binary_cross_entropy(logit, target))
    np.testing.assert_allclose(loss, [0.0, 0.0, 200.0], atol=1e-6)


def test_binary_cross_entropy_matches_a_loop():
    logits, targets = RNG.normal(size=20) * 4, RNG.random(20)
    expected = []
    for logit, target in zip(logits, targets, strict=True):
        p = 1 / (1 + np.exp(-logit))
        expected.append(-(target * np.log(p) + (1 - target) * np.log(1 - p)))
    loss = binary_cross_entropy(tensor(logits), tensor(targets))
    np.testing.assert_allclose(to_numpy(loss), expected, rtol=1e-4)


def test_binary_cross_entropy_of_bfloat16_logits_is_float32():
    loss = binary_cross_entropy(ops.cast([0.5], "bfloat16"), tensor([0.3]))
    assert "float32" in str(loss.dtype)
    expected = binary_cross_entropy(tensor([0.5]), tensor([0.3]))
    np.testing.assert_array_equal(to_numpy(loss), to_numpy(expected))


def make(logits):
    return Categorical(logits, 0.01, event_ndim=1)


def kl(posterior, prior):
    """Item 2.14, summed over the latents, in a loop."""
    result = np.zeros(len(posterior))
    for row, latent in np.ndindex(posterior.shape[:2]):
        p = 0.99 * softmax(posterior[row, latent]) + 0.0025
        q = 0.99 * softmax(prior[row, latent]) + 0.0025
        result[row] += np.sum(p * np.log(p / q))
    return result


def losses(posterior, prior, free_nats):
    return evaluate(
        lambda x, y: kl_losses(x, y, make, free_nats)[0], posterior, prior
    )


def test_kl_losses_match_hand_computed_values():
    # Without unimix: posterior [1/4, 3/4], prior [1/2, 1/2], two latents:
    # 2 * (0.25 * log(0.5) + 0.75 * log(1.5)) = 2 * 0.130812 = 0.261624
    posterior = tensor(np.log([[[1.0, 3.0], [1.0, 3.0]]]))
    prior = tensor(np.zeros((1, 2, 2)))
    both, _ = kl_losses(
        posterior, prior, lambda x: Categorical(x, event_ndim=1), 0.1
    )
    for loss in both:
        np.testing.assert_allclose(to_numpy(loss), [0.261624], rtol=1e-5)


@pytest.mark.parametrize("free_nats", [0.0, 1.0])
def test_kl_losses_match_a_loop(free_nats):
    expected = np.maximum(kl(POSTERIOR, PRIOR), free_nats)
    for loss in losses(POSTERIOR, PRIOR, free_nats):
        np.testing.assert_allclose(loss, expected, rtol=1e-4)


def test_free_nats_clip_the_sum_over_the_latents():
    # Every latent is below 1 nat, their sum above: nothing is clipped.
    small = 0.7 * PRIOR
    single = [
        kl(POSTERIOR[:, i : i + 1], small[:, i : i + 1]) for i in range(3)
    ]
    rows = (np.max(single, 0) < 1) & (np.sum(single, 0) > 1)
    assert rows.any()
    dyn, rep = losses(POSTERIOR, small, 1.0)
    np.testing.assert_allclose(dyn[rows], np.sum(single, 0)[rows], rtol=1e-4)
    np.testing.assert_array_equal(dyn, rep)


def test_equal_distributions_cost_the_free_nats():
    for loss in losses(POSTERIOR, POSTERIOR, 1.0):
        np.testing.assert_array_equal(loss, np.ones(5))


@pytest.mark.parametrize("term, moved", [(0, 1), (1, 0)])
def test_each_loss_moves_one_distribution(term, moved):
    # dyn (0) moves the prior (1), rep (1) the posterior (0).
    found = gradients(
        lambda x, y: ops.sum(kl_losses(x, y, make, 0.0)[0][term]),
        POSTERIOR,
        PRIOR,
    )
    plain = gradients(
        lambda x, y: ops.sum(make(x).kl(make(y))), POSTERIOR, PRIOR
    )
    np.testing.assert_array_equal(found[1 - moved], 0.0)
    np.testing.assert_allclose(found[moved], plain[moved], rtol=1e-4, atol=1e-6)


def test_nothing_is_learned_below_the_free_nats():
    found = gradients(
        lambda x, y: ops.sum(sum(kl_losses(x, y, make, 100.0)[0])),
        POSTERIOR,
        PRIOR,
    )
    for gradient in found:
        np.testing.assert_array_equal(gradient, 0.0)


def test_kl_losses_return_the_distributions():
    _, (posterior, prior) = kl_losses(
        tensor(POSTERIOR), tensor(PRIOR), make, 1.0
    )
    for spread, logits in ((posterior, POSTERIOR), (prior, PRIOR)):
        np.testing.assert_allclose(
            to_numpy(spread.probs), 0.99 * softmax(logits) + 0.0025, rtol=1e-5
        )
