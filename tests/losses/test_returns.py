import numpy as np
import pytest
from backend_tools import gradients
from helpers import to_numpy
from helpers import trace
from keras import ops

from keras_dreamer.losses import lambda_returns
from keras_dreamer.losses import update_percentiles

REWARD = np.array([[9.0, 1.0, 2.0]], "float32")  # The first one is unused.
BOOTSTRAP = np.array([[10.0, 20.0, 30.0]], "float32")
NEVER = np.zeros((1, 3), "float32")


def tensor(x):
    return ops.convert_to_tensor(np.asarray(x, "float32"))


def returns(reward, terminal, last, bootstrap, discount, lam):
    arrays = map(tensor, (reward, terminal, last, bootstrap))
    return to_numpy(lambda_returns(*arrays, discount, lam))


def test_matches_hand_computed_values():
    # R1 = 2 + 0.5 * (0.5 * 30 + 0.5 * 30) = 17
    # R0 = 1 + 0.5 * (0.5 * 20 + 0.5 * 17) = 10.25
    actual = returns(REWARD, NEVER, NEVER, BOOTSTRAP, 0.5, 0.5)
    np.testing.assert_allclose(actual, [[10.25, 17.0]], rtol=1e-6)


@pytest.mark.parametrize("case", trace("lambda_return"))
def test_reference_values(case):
    actual = returns(
        case["rew"],
        case["term"],
        case["last"],
        case["boot"],
        case["disc"],
        case["lam"],
    )
    np.testing.assert_allclose(actual, case["ret"], rtol=1e-6)


def test_lambda_zero_is_the_one_step_target():
    actual = returns(REWARD, NEVER, NEVER, BOOTSTRAP, 0.5, 0.0)
    expected = REWARD[:, 1:] + 0.5 * BOOTSTRAP[:, 1:]
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_lambda_one_is_the_sum_of_discounted_rewards():
    # R0 = 1 + 0.5 * 2 + 0.25 * 30 = 9.5, R1 = 2 + 0.5 * 30 = 17
    actual = returns(REWARD, NEVER, NEVER, BOOTSTRAP, 0.5, 1.0)
    np.testing.assert_allclose(actual, [[9.5, 17.0]], rtol=1e-6)


def test_terminal_steps_have_no_future():
    # Step 1 is terminal: R0 is its reward alone.
    terminal = np.float32([[0, 1, 0]])
    actual = returns(REWARD, terminal, terminal, BOOTSTRAP, 0.9, 0.95)
    assert actual[0, 0] == 1.0


def test_a_time_limit_bootstraps():
    # Step 1 is last, not terminal: R0 = 1 + 0.5 * 20 whatever follows.
    last = np.float32([[0, 1, 0]])
    actual = returns(REWARD, NEVER, last, BOOTSTRAP, 0.5, 0.95)
    assert actual[0, 0] == 11.0


def loop(reward, terminal, last, bootstrap, discount, lam):
    """Algorithm H, sample by sample."""
    rows, length = reward.shape
    result = np.zeros((rows, length - 1))
    for row in range(rows):
        future = bootstrap[row, -1]
        for step in reversed(range(length - 1)):
            live = discount * (1 - terminal[row, step + 1])
            cont = lam * (1 - last[row, step + 1])
            future = reward[row, step + 1] + live * (
                (1 - cont) * bootstrap[row, step + 1] + cont * future
            )
            result[row, step] = future
    return result


def test_matches_a_loop():
    rng = np.random.default_rng(0)
    reward, bootstrap = rng.normal(size=(2, 4, 7))
    last = (rng.random((4, 7)) < 0.3) * 1.0
    terminal = last * rng.random((4, 7))
    arrays = (reward, terminal, last, bootstrap, 0.97, 0.9)
    np.testing.assert_allclose(
        returns(*arrays), loop(*arrays), rtol=1e-5, atol=1e-6
    )


def test_gradients_flow_through():
    # dR0 / d(reward[1], reward[2]) = (1, live * cont) = (1, 0.25)
    (gradient,) = gradients(
        lambda reward: lambda_returns(
            reward, tensor(NEVER), tensor(NEVER), tensor(BOOTSTRAP), 0.5, 0.5
        )[0, 0],
        REWARD,
    )
    np.testing.assert_allclose(gradient, [[0.0, 1.0, 0.25]], rtol=1e-6)


def percentiles(low, high, values, rate, shares=(5.0, 95.0)):
    low, high = update_percentiles(
        tensor(low), tensor(high), tensor(values), rate, shares
    )
    return float(to_numpy(low)), float(to_numpy(high))


def test_percentiles_match_hand_computed_values():
    # Of 0 .. 20: the 5th is 1, the 95th 19.
    # low = 0.75 * 4 + 0.25 * 1 = 3.25, high = 0.75 * 8 + 0.25 * 19 = 10.75
    actual = percentiles(4.0, 8.0, np.arange(21).reshape(3, 7), 0.25)
    np.testing.assert_allclose(actual, [3.25, 10.75], rtol=1e-6)


def test_percentiles_reference_values():
    expected = trace("retnorm")
    ends = np.array([expected["p5"], expected["p95"]])
    actual = percentiles(0.0, 0.0, expected["values"], 1.0)
    np.testing.assert_allclose(actual, ends, rtol=1e-6)
    # The first update from zeros, without debiasing.
    actual = percentiles(0.0, 0.0, expected["values"], expected["rate"])
    np.testing.assert_allclose(actual, 0.01 * ends, rtol=1e-6)


def test_percentiles_with_rate_zero_stay():
    assert percentiles(4.0, 8.0, np.arange(21), 0.0) == (4.0, 8.0)


def test_percentiles_match_numpy():
    values = np.random.default_rng(1).normal(size=(4, 5, 3))
    actual = percentiles(0.0, 0.0, values, 1.0, (10.0, 60.0))
    np.testing.assert_allclose(
        actual, np.percentile(values, [10, 60]), rtol=1e-5
    )


def test_percentiles_pass_on_no_gradient():
    (gradient,) = gradients(
        lambda values: sum(
            update_percentiles(
                tensor(0.0), tensor(0.0), values, 0.5, (5.0, 95.0)
            )
        ),
        np.arange(21, dtype="float32"),
    )
    np.testing.assert_array_equal(gradient, 0.0)
