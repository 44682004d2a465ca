import numpy as np
import pytest
from backend_tools import compiled
from backend_tools import gradients
from helpers import to_numpy
from helpers import trace
from keras import ops
from numpy_reference import softmax

from keras_dreamer.distributions import Categorical

JUST_BELOW_ONE = np.nextafter(np.float32(1), np.float32(0))
LOGITS = np.random.default_rng(0).normal(size=(5, 3, 4)).astype("float32")
SIZES = [4, 2, 3]


def mixed(logits, unimix):
    return (1 - unimix) * softmax(logits) + unimix / logits.shape[-1]


def tensor(x):
    return ops.convert_to_tensor(np.asarray(x, "float32"))


def test_matches_hand_computed_values():
    # softmax([0, log 3]) = [0.25, 0.75]; with half of the uniform
    # 0.5 * [0.25, 0.75] + 0.5 * [0.5, 0.5] = [0.375, 0.625].
    # log(0.375) = -0.980829, log(0.625) = -0.470004
    # entropy = 0.375 * 0.980829 + 0.625 * 0.470004 = 0.661563
    spread = Categorical(tensor([[0.0, np.log(3.0)]]), unimix=0.5)
    np.testing.assert_allclose(
        to_numpy(spread.probs), [[0.375, 0.625]], rtol=1e-6
    )
    index = np.int32([1])
    np.testing.assert_allclose(
        to_numpy(spread.log_prob(index)), [-0.470004], rtol=1e-5
    )
    np.testing.assert_allclose(
        to_numpy(spread.entropy()), [0.661563], rtol=1e-5
    )


def test_kl_matches_hand_computed_values():
    # 0.25 * log(0.25 / 0.5) + 0.75 * log(0.75 / 0.5)
    # = -0.173287 + 0.304099 = 0.130812
    one = Categorical(tensor([[0.0, np.log(3.0)]]))
    other = Categorical(tensor([[0.0, 0.0]]))
    np.testing.assert_allclose(to_numpy(one.kl(other)), [0.130812], rtol=1e-5)


def test_reference_values():
    expected = trace("unimix")
    one = Categorical(tensor(expected["logits"]), unimix=0.01)
    other = Categorical(tensor(expected["other"]), unimix=0.01)
    pairs = [
        (one.probs, expected["mixed_probs"]),
        (one.entropy(), expected["entropy"]),
        (one.kl(other), expected["kl"]),
        (other.kl(one), expected["kl_reverse"]),
    ]
    for actual, value in pairs:
        np.testing.assert_allclose(
            to_numpy(actual), value, rtol=1e-5, atol=1e-7
        )


@pytest.mark.parametrize("unimix", [0.0, 0.01, 1.0])
def test_matches_a_loop_over_the_event(unimix):
    other = np.flip(LOGITS, 0).copy()
    index = np.random.default_rng(1).integers(0, 4, (5, 3)).astype("int32")
    log_prob, entropy, kl = np.zeros(5), np.zeros(5), np.zeros(5)
    for row in range(5):
        for variable in range(3):
            p = mixed(LOGITS[row, variable], unimix)
            q = mixed(other[row, variable], unimix)
            log_prob[row] += np.log(p[index[row, variable]])
            entropy[row] -= np.sum(p * np.log(p))
            kl[row] += np.sum(p * np.log(p / q))
    spread = Categorical(tensor(LOGITS), unimix, event_ndim=1)
    against = Categorical(tensor(other), unimix, event_ndim=1)
    for actual, expected in [
        (spread.log_prob(index), log_prob),
        (spread.entropy(), entropy),
        (spread.kl(against), kl),
    ]:
        np.testing.assert_allclose(
            to_numpy(actual), expected, rtol=1e-5, atol=1e-6
        )


def test_uniform_limits():
    # The entropy of C equal classes is log C, its divergence from itself 0.
    spread = Categorical(tensor(np.zeros((2, 3, 4))), 0.01, event_ndim=1)
    np.testing.assert_allclose(
        to_numpy(spread.entropy()), 3 * np.log(4.0), rtol=1e-6
    )
    np.testing.assert_allclose(to_numpy(spread.kl(spread)), 0.0, atol=1e-7)


def test_adding_a_constant_to_the_logits_changes_nothing():
    one = Categorical(tensor(LOGITS), 0.01)
    other = Categorical(tensor(LOGITS + 3.0), 0.01)
    np.testing.assert_allclose(
        to_numpy(one.probs), to_numpy(other.probs), rtol=1e-5
    )


def test_extreme_logits_stay_finite():
    spread = Categorical(tensor([[1e4, 0.0, -1e4]]), unimix=0.01)
    # Mixed: log(0.01 / 3) = -5.703782
    actual = to_numpy(spread.log_prob(np.int32([2])))
    np.testing.assert_allclose(actual, [-5.703782], rtol=1e-5)
    (gradient,) = gradients(
        lambda x: ops.sum(Categorical(x, 0.01).log_prob(np.int32([2]))),
        np.float32([[1e4, 0.0, -1e4]]),
    )
    assert np.isfinite(gradient).all()


def test_bfloat16_logits_are_computed_in_float32():
    spread = Categorical(ops.cast(tensor(LOGITS), "bfloat16"), 0.01)
    for x in (spread.probs, spread.entropy(), spread.log_probs):
        assert "float32" in str(x.dtype)
    rounded = to_numpy(ops.cast(ops.cast(LOGITS, "bfloat16"), "float32"))
    np.testing.assert_allclose(
        to_numpy(spread.probs), mixed(rounded, 0.01), rtol=1e-5
    )


def test_sample_inverts_the_cumulative_distribution():
    # Probabilities [0.25, 0.5, 0.25]: up to 0.25, 0.75 and 1.
    logits = np.log([[0.25, 0.5, 0.25]]).repeat(6, 0)
    noise = tensor([0.0, 0.24, 0.26, 0.74, 0.76, JUST_BELOW_ONE])
    sample = Categorical(tensor(logits)).sample(noise)
    assert "int32" in str(sample.dtype)
    np.testing.assert_array_equal(to_numpy(sample), [0, 0, 1, 1, 2, 2])


@pytest.mark.parametrize("unimix", [0.0, 0.3])
def test_sample_frequencies_match_the_mixed_probabilities(unimix):
    # Evenly spread noise instead of random numbers: no luck involved.
    count = 10_000
    noise = (np.arange(count) + 0.5) / count
    logits = np.broadcast_to(LOGITS[0, 0], (count, 4))
    sample = to_numpy(Categorical(tensor(logits), unimix).sample(tensor(noise)))
    frequencies = np.bincount(sample, minlength=4) / count
    np.testing.assert_allclose(
        frequencies, mixed(LOGITS[0, 0], unimix), atol=2 / count
    )


def test_sample_frequencies_with_random_noise():
    count = 40_000
    noise = np.random.default_rng(2).random((count, 3), "float32")
    logits = np.broadcast_to(LOGITS[0], (count, 3, 4))
    spread = Categorical(tensor(logits), 0.01, event_ndim=1)
    sample = to_numpy(spread.sample(tensor(noise)))
    for variable in range(3):
        p = mixed(LOGITS[0, variable], 0.01)
        frequencies = np.bincount(sample[:, variable], minlength=4) / count
        # Five standard errors.
        assert (
            np.abs(frequencies - p) < 5 * np.sqrt(p * (1 - p) / count)
        ).all()


def test_every_class_but_the_last_gets_its_share_at_zero_and_one():
    rng = np.random.default_rng(3)
    logits = tensor(rng.normal(size=(200, 16)) * 5)
    zero = Categorical(logits, 0.01).sample(tensor(np.zeros(200)))
    one = Categorical(logits, 0.01).sample(tensor(np.full(200, JUST_BELOW_ONE)))
    np.testing.assert_array_equal(to_numpy(zero), 0)
    np.testing.assert_array_equal(to_numpy(one), 15)


def test_no_noise_gives_the_mode():
    spread = Categorical(tensor(LOGITS), 0.01)
    expected = LOGITS.argmax(-1)
    np.testing.assert_array_equal(to_numpy(spread.sample(None)), expected)
    np.testing.assert_array_equal(to_numpy(spread.mode()), expected)
    assert "int32" in str(spread.mode().dtype)


@pytest.mark.parametrize("unimix", [0.0, 0.01, 1.0])
def test_surplus_classes_are_never_sampled(unimix):
    # Large logits for the surplus, noise from 0 to just below 1.
    count = 1001
    logits = np.random.default_rng(4).normal(size=(count, 3, 4)) * 4
    logits[:, 1, 2:] += 50.0
    logits[:, 2, 3:] += 50.0
    noise = np.linspace(0, 1, count, dtype="float32")
    noise = np.minimum(noise, JUST_BELOW_ONE)[:, None].repeat(3, 1)
    spread = Categorical(tensor(logits), unimix, 1, SIZES)
    samples = to_numpy(spread.sample(tensor(noise)))
    assert (samples < SIZES).all() and (samples >= 0).all()
    assert (to_numpy(spread.mode()) < SIZES).all()
    np.testing.assert_array_equal(samples[-1], np.array(SIZES) - 1)
    assert (to_numpy(spread.probs)[:, 1, 2:] == 0).all()
    assert (to_numpy(spread.probs)[:, 2, 3:] == 0).all()


@pytest.mark.parametrize("unimix", [0.0, 0.01])
def test_unequal_sizes_are_separate_distributions(unimix):
    index = np.int32([[3, 1, 2], [0, 0, 0], [1, 1, 1], [2, 0, 1], [3, 1, 0]])
    other = np.flip(LOGITS, 0).copy()
    spread = Categorical(tensor(LOGITS), unimix, 1, SIZES)
    against = Categorical(tensor(other), unimix, 1, SIZES)
    log_prob, entropy, kl = np.zeros(5), np.zeros(5), np.zeros(5)
    for row in range(5):
        for variable, size in enumerate(SIZES):
            p = mixed(LOGITS[row, variable, :size], unimix)
            q = mixed(other[row, variable, :size], unimix)
            log_prob[row] += np.log(p[index[row, variable]])
            entropy[row] -= np.sum(p * np.log(p))
            kl[row] += np.sum(p * np.log(p / q))
    for actual, expected in [
        (spread.log_prob(index), log_prob),
        (spread.entropy(), entropy),
        (spread.kl(against), kl),
    ]:
        np.testing.assert_allclose(
            to_numpy(actual), expected, rtol=1e-5, atol=1e-6
        )


def test_surplus_classes_get_no_gradient():
    (gradient,) = gradients(
        lambda x: loss_of_zeros(Categorical(x, 0.01, 1, SIZES)), LOGITS
    )
    assert np.isfinite(gradient).all()
    assert (gradient[:, 1, 2:] == 0).all() and (gradient[:, 2, 3:] == 0).all()
    assert (gradient[:, 0] != 0).any()


def loss_of_zeros(spread):
    index = np.zeros((5, 3), "int32")
    return ops.sum(spread.entropy() + spread.log_prob(index))


def test_straight_through_value_is_exactly_one_hot():
    noise = np.random.default_rng(5).random((5, 3), "float32")

    def encode(logits, noise):
        spread = Categorical(logits, 0.01, event_ndim=1)
        index = spread.sample(noise)
        return index, spread.straight_through(index)

    for function in (encode, compiled(encode)):
        index, value = function(tensor(LOGITS), tensor(noise))
        np.testing.assert_array_equal(
            to_numpy(value), np.eye(4)[to_numpy(index)]
        )
        assert "float32" in str(value.dtype)


@pytest.mark.parametrize("unimix", [0.0, 0.1])
def test_straight_through_gradient_is_that_of_the_mixed_softmax(unimix):
    weight = np.random.default_rng(6).normal(size=(5, 3, 4)).astype("float32")

    def through(logits):
        spread = Categorical(logits, unimix)
        value = spread.straight_through(spread.sample(tensor(LOGITS[..., 0])))
        return ops.sum(value * tensor(weight))

    def soft(logits):
        probs = ops.softmax(logits, axis=-1)
        return ops.sum(((1 - unimix) * probs + unimix / 4) * tensor(weight))

    (actual,), (expected,) = gradients(through, LOGITS), gradients(soft, LOGITS)
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-6)


def test_samples_pass_on_no_gradient():
    (gradient,) = gradients(
        lambda x: ops.sum(
            ops.cast(
                Categorical(x, 0.01).sample(tensor(LOGITS[..., 0])), "float32"
            )
        ),
        LOGITS,
    )
    np.testing.assert_array_equal(gradient, 0.0)


@pytest.mark.parametrize("unimix", [0.0, 0.01])
def test_use_in_a_compiled_function_leaves_nothing_behind(unimix):
    spread = Categorical(tensor(LOGITS), unimix, event_ndim=1)
    index = ops.zeros((5, 3), "int32")
    inside = compiled(lambda index: spread.log_prob(index) + spread.entropy())
    found = to_numpy(inside(index))
    expected = to_numpy(spread.log_prob(index) + spread.entropy())
    np.testing.assert_allclose(found, expected, rtol=1e-5)
