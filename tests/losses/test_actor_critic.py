import types

import numpy as np
from backend_tools import evaluate
from backend_tools import gradients
from helpers import to_numpy
from keras import ops

from keras_dreamer.losses import TwoHot
from keras_dreamer.losses import continuation_weights
from keras_dreamer.losses import policy_loss
from keras_dreamer.losses import replay_value_loss
from keras_dreamer.losses import value_loss

BINS = np.float32([-2.0, -1.0, 0.0, 1.0, 2.0])
RNG = np.random.default_rng(0)
CONFIG = types.SimpleNamespace(repval_lam=0.9, slowreg=0.5)


def tensor(x):
    return ops.convert_to_tensor(np.asarray(x, "float32"))


def value_of(logits):
    return TwoHot(logits, BINS)


def cross_entropy(logits, target):
    """Two-hot cross-entropy of one number on the unit-spaced bins."""
    position = np.clip(target, -2, 2) + 2
    below = min(int(np.floor(position)), 3)
    weight = position - below
    log_probs = logits - np.log(np.exp(logits).sum())
    return -((1 - weight) * log_probs[below] + weight * log_probs[below + 1])


def test_policy_loss_matches_hand_computed_values():
    # -0.5 * (-1.2 * 2 + 0.1 * 3) = 1.05
    loss = policy_loss(
        tensor([[-1.2]]), tensor([[3.0]]), tensor([[2.0]]), tensor([[0.5]]), 0.1
    )
    np.testing.assert_allclose(to_numpy(loss), [[1.05]], rtol=1e-6)


def test_policy_loss_without_advantage_is_the_entropy_bonus():
    log_prob, entropy, weight = RNG.normal(size=(3, 4, 5))
    loss = policy_loss(
        tensor(log_prob),
        tensor(entropy),
        tensor(np.zeros((4, 5))),
        tensor(weight),
        0.3,
    )
    np.testing.assert_allclose(
        to_numpy(loss), -0.3 * weight * entropy, rtol=1e-5
    )


def test_policy_loss_matches_a_loop():
    log_prob, entropy, advantage, weight = RNG.normal(size=(4, 3, 5))
    expected = np.zeros((3, 5))
    for i in np.ndindex(3, 5):
        expected[i] = -weight[i] * (
            log_prob[i] * advantage[i] + 3e-4 * entropy[i]
        )
    loss = policy_loss(
        *map(tensor, (log_prob, entropy, advantage, weight)), 3e-4
    )
    np.testing.assert_allclose(to_numpy(loss), expected, rtol=1e-5)


def test_policy_loss_moves_only_the_policy():
    arrays = [RNG.normal(size=(2, 3)).astype("float32") for _ in range(4)]
    found = gradients(lambda *x: ops.sum(policy_loss(*x, 0.1)), *arrays)
    _, _, advantage, weight = arrays
    np.testing.assert_allclose(found[0], -weight * advantage, rtol=1e-5)
    np.testing.assert_allclose(found[1], -weight * 0.1, rtol=1e-5)
    np.testing.assert_array_equal(found[2], 0.0)
    np.testing.assert_array_equal(found[3], 0.0)


def test_value_loss_matches_hand_computed_values():
    # Equal logits: both terms cost log 5 = 1.609438, (1 + 0.5) * 1.609438
    loss = evaluate(
        lambda x, y, z: value_loss(value_of(x), y, z, 0.5),
        np.zeros((1, 1, 5)),
        [[0.3]],
        [[1.7]],
    )
    np.testing.assert_allclose(loss, [[2.414157]], rtol=1e-6)


def test_value_loss_without_the_slow_critic_is_the_regression():
    logits = RNG.normal(size=(2, 3, 5)).astype("float32")
    target, slow = RNG.normal(size=(2, 2, 3))

    def both(logits, target, slow):
        value = value_of(logits)
        return value_loss(value, target, slow, 0.0), value.loss(target)

    loss, regression = evaluate(both, logits, target, slow)
    np.testing.assert_allclose(loss, regression, rtol=1e-6)


def test_value_loss_matches_a_loop():
    logits = RNG.normal(size=(2, 3, 5)).astype("float32")
    target, slow = RNG.normal(size=(2, 2, 3)) * 2
    expected = np.zeros((2, 3))
    for i in np.ndindex(2, 3):
        expected[i] = cross_entropy(logits[i], target[i])
        expected[i] += 0.7 * cross_entropy(logits[i], slow[i])
    loss = evaluate(
        lambda x, y, z: value_loss(value_of(x), y, z, 0.7),
        logits,
        target,
        slow,
    )
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


def test_value_loss_moves_only_the_critic():
    logits = RNG.normal(size=(2, 3, 5)).astype("float32")
    target, slow = RNG.normal(size=(2, 2, 3)).astype("float32")
    found = gradients(
        lambda x, y, z: ops.sum(value_loss(value_of(x), y, z, 1.0)),
        logits,
        target,
        slow,
    )
    assert np.abs(found[0]).max() > 0.1
    np.testing.assert_array_equal(found[1], 0.0)
    np.testing.assert_array_equal(found[2], 0.0)


def test_continuation_weights_match_hand_computed_values():
    # 0.5, 0.5 * 0.9 * 0.8 = 0.36, 0.36 * 0.9 * 1 = 0.324
    weights = continuation_weights(tensor([[0.5, 0.8, 1.0]]), 0.9)
    np.testing.assert_allclose(
        to_numpy(weights), [[0.5, 0.36, 0.324]], rtol=1e-6
    )


def test_continuation_weights_after_the_end_are_zero():
    weights = continuation_weights(tensor([[1.0, 0.0, 1.0]]), 1.0)
    np.testing.assert_array_equal(to_numpy(weights), [[1.0, 0.0, 0.0]])


def test_continuation_weights_match_a_loop():
    cont = RNG.random((4, 6))
    expected = np.zeros((4, 6))
    for row, step in np.ndindex(4, 6):
        expected[row, step] = 0.97**step * np.prod(cont[row, : step + 1])
    weights = continuation_weights(tensor(cont), 0.97)
    np.testing.assert_allclose(to_numpy(weights), expected, rtol=1e-5)


def test_continuation_weights_pass_on_no_gradient():
    (gradient,) = gradients(
        lambda x: ops.sum(continuation_weights(x, 0.9)),
        RNG.random((2, 3)).astype("float32"),
    )
    np.testing.assert_array_equal(gradient, 0.0)


def replay_loss(logits, slow, reward, last, terminal, bootstrap, discount):
    batch = {
        "reward": reward,
        "is_last": last,
        "is_terminal": terminal,
    }
    return replay_value_loss(
        value_of(logits), slow, batch, bootstrap, discount, CONFIG
    )


def test_replay_value_loss_matches_hand_computed_values():
    # Equal logits cost (1 + 0.5) * log 5 = 2.414157 where no episode ends.
    loss = evaluate(
        lambda *x: replay_loss(*x, 0.9),
        np.zeros((1, 3, 5)),
        np.zeros((1, 3)),
        np.ones((1, 3)),
        [[0.0, 1.0, 0.0]],
        [[0.0, 0.0, 0.0]],
        np.ones((1, 3)),
    )
    np.testing.assert_allclose(loss, [[2.414157, 0.0]], rtol=1e-6)


def test_replay_value_loss_matches_a_loop():
    rows, length, discount = 4, 6, 0.8
    logits = RNG.normal(size=(rows, length, 5)).astype("float32")
    slow, reward, bootstrap = RNG.normal(size=(3, rows, length)).astype(
        "float32"
    )
    last = RNG.random((rows, length)) < 0.3
    terminal = last & (RNG.random((rows, length)) < 0.5)
    expected = np.zeros((rows, length - 1))
    for row in range(rows):
        future = bootstrap[row, -1]
        for t in reversed(range(length - 1)):  # Algorithms G and H.
            live = discount * (1 - terminal[row, t + 1])
            cont = 0.9 * (1 - last[row, t + 1])
            future = reward[row, t + 1] + live * (
                (1 - cont) * bootstrap[row, t + 1] + cont * future
            )
            loss = cross_entropy(logits[row, t], future)
            loss += 0.5 * cross_entropy(logits[row, t], slow[row, t])
            expected[row, t] = (1 - last[row, t]) * loss
    assert (expected == 0).any()
    arrays = (logits, slow, reward, 1.0 * last, 1.0 * terminal, bootstrap)
    loss = evaluate(lambda *x: replay_loss(*x, discount), *arrays)
    np.testing.assert_allclose(loss, expected, rtol=1e-4, atol=1e-6)


def test_replay_value_loss_moves_only_the_critic():
    logits = RNG.normal(size=(2, 4, 5)).astype("float32")
    slow, reward, bootstrap = RNG.normal(size=(3, 2, 4)).astype("float32")
    last = np.float32([[0, 1, 0, 0], [0, 0, 0, 0]])
    found = gradients(
        lambda x, s, r, b: ops.sum(
            replay_loss(x, s, r, tensor(last), tensor(0 * last), b, 0.9)
        ),
        logits,
        slow,
        reward,
        bootstrap,
    )
    assert np.abs(found[0][0, 0]).max() > 0.01
    # Nothing at the end of the episode or the window.
    np.testing.assert_array_equal(found[0][0, 1], 0.0)
    np.testing.assert_array_equal(found[0][:, 3], 0.0)
    for gradient in found[1:]:
        np.testing.assert_array_equal(gradient, 0.0)
