import numpy as np
import pytest
from backend_tools import gradients
from helpers import to_numpy
from helpers import trace
from keras import ops

from keras_dreamer.distributions import Normal
from keras_dreamer.distributions.normal import sum_event

MEAN = np.array([[0.5, -1.0], [2.0, 0.0]], "float32")
STD = np.array([[1.0, 0.5], [0.1, 2.0]], "float32")


def tensor(x):
    return ops.convert_to_tensor(np.asarray(x, "float32"))


def normal(mean=MEAN, std=STD, event_ndim=1):
    return Normal(tensor(mean), tensor(std), event_ndim)


def test_log_prob_matches_hand_computed_values():
    # -0.5 * ((1 - 0) / 2)^2 - log(2) - 0.5 * log(2 pi)
    # = -0.125 - 0.693147 - 0.918939 = -1.737086
    actual = normal(np.float32([0.0]), np.float32([2.0])).log_prob(
        tensor([1.0])
    )
    np.testing.assert_allclose(to_numpy(actual), -1.737086, rtol=1e-6)


def test_entropy_matches_hand_computed_values():
    # 0.5 * log(2 pi e) + log(2) = 1.418939 + 0.693147 = 2.112086
    actual = normal(np.float32([0.0]), np.float32([2.0])).entropy()
    np.testing.assert_allclose(to_numpy(actual), 2.112086, rtol=1e-6)


def test_reference_values():
    expected = trace("bounded_normal")
    spread = normal(
        np.float32(expected["mean"]), np.float32(expected["std"]), 0
    )
    actual = spread.log_prob(tensor(expected["action"]))
    np.testing.assert_allclose(to_numpy(actual), expected["logp"], rtol=1e-5)
    np.testing.assert_allclose(
        to_numpy(spread.entropy()), expected["entropy"], rtol=1e-6
    )


def test_matches_a_loop_over_the_event():
    value = np.float32([[0.0, 0.5], [1.0, -3.0]])
    log_prob, entropy = np.zeros(2), np.zeros(2)
    for row in range(2):
        for column in range(2):
            mean, std = MEAN[row, column], STD[row, column]
            scaled = (value[row, column] - mean) / std
            log_prob[row] += np.log(
                np.exp(-0.5 * scaled**2) / (std * np.sqrt(2 * np.pi))
            )
            entropy[row] += 0.5 * np.log(2 * np.pi * np.e * std**2)
    actual = normal()
    np.testing.assert_allclose(
        to_numpy(actual.log_prob(tensor(value))), log_prob, rtol=1e-5
    )
    np.testing.assert_allclose(to_numpy(actual.entropy()), entropy, rtol=1e-5)


def test_sample_is_not_squashed():
    # 2 + 30 * 0.1 = 5, 0.5 - 3 * 1 = -2.5
    noise = np.float32([[-3.0, 0.0], [30.0, 1.0]])
    np.testing.assert_allclose(
        to_numpy(normal().sample(tensor(noise))),
        [[-2.5, -1.0], [5.0, 2.0]],
        rtol=1e-6,
    )


def test_sample_without_noise_is_the_mode():
    sample = to_numpy(normal().sample(tensor(np.zeros((2, 2)))))
    np.testing.assert_array_equal(sample, MEAN)
    np.testing.assert_array_equal(to_numpy(normal().mode()), MEAN)


def test_samples_have_the_mean_and_width():
    noise = np.random.default_rng(0).standard_normal((20_000, 2, 2))
    samples = to_numpy(normal().sample(tensor(noise)))
    np.testing.assert_allclose(samples.mean(0), MEAN, atol=0.05)
    np.testing.assert_allclose(samples.std(0), STD, rtol=0.03)


def test_log_prob_is_largest_at_the_mean():
    (gradient,) = gradients(
        lambda value: ops.sum(normal().log_prob(value)), MEAN
    )
    np.testing.assert_array_equal(gradient, np.zeros((2, 2)))


@pytest.mark.parametrize(
    "event_ndim, expected",
    # 1 + 2 = 3, 3 + 4 = 7, 3 + 7 = 10
    [(0, [[1.0, 2.0], [3.0, 4.0]]), (1, [3.0, 7.0]), (2, 10.0)],
)
def test_sum_event(event_ndim, expected):
    x = tensor([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(to_numpy(sum_event(x, event_ndim)), expected)
