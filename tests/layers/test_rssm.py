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

from keras_dreamer.layers import RSSM

RNG = np.random.default_rng(0)
TOKENS = RNG.normal(size=(3, 5, 6)).astype("float32")
ACTION = RNG.normal(size=(3, 5, 2)).astype("float32") * 2
FIRST = np.zeros((3, 5), bool)
FIRST[0, 0] = FIRST[1, 2] = FIRST[2, 2] = FIRST[2, 4] = True
INPUTS = (TOKENS, ACTION, FIRST)


def random_rssm(**kwargs):
    rssm = RSSM(16, 8, 4, 3, 4, **kwargs)
    rssm.build((None, None, 6), (None, None, 2))
    randomize(rssm)
    return rssm


def call(rssm, *inputs):
    return evaluate(rssm, *inputs)


def test_one_step_matches_algorithms_a_and_b():
    rssm = random_rssm()
    weights = numpy_weights(rssm)
    deter, stoch, logits = call(rssm, *(x[:, :1] for x in INPUTS))
    zeros = np.zeros(16), np.zeros(12)
    for row in range(3):
        expected = reference.observe(
            weights, zeros, TOKENS[row, 0], ACTION[row, 0], FIRST[row, 0], 4, 4
        )
        for actual, value in zip((deter, stoch, logits), expected, strict=True):
            np.testing.assert_allclose(
                actual[row, 0], value, rtol=1e-4, atol=1e-5
            )


def test_a_sequence_matches_a_loop_over_algorithm_b():
    rssm = random_rssm()
    weights, outputs = numpy_weights(rssm), call(rssm, *INPUTS)
    for row in range(3):
        state = np.zeros(16), np.zeros(12)
        for step in range(5):
            *state, logits = reference.observe(
                weights, state, *(x[row, step] for x in INPUTS), 4, 4
            )
            for actual, value in zip(outputs, (*state, logits), strict=True):
                np.testing.assert_allclose(
                    actual[row, step], value, rtol=1e-3, atol=1e-4
                )


def test_the_first_step_of_an_episode_is_a_fresh_start():
    rssm = random_rssm()
    whole = call(rssm, *INPUTS)
    # Row 1 starts anew at step 2: as if nothing had been before, whatever
    # the action.
    fresh = call(rssm, TOKENS[1:2, 2:], ACTION[1:2, 2:], FIRST[1:2, 2:])
    for one, other in zip(whole, fresh, strict=True):
        np.testing.assert_allclose(one[1, 2:], other[0], rtol=1e-5, atol=1e-6)
    action = ACTION.copy()
    action[1, 2] = 5.0
    for one, other in zip(
        whole, call(rssm, TOKENS, action, FIRST), strict=True
    ):
        np.testing.assert_array_equal(one[1], other[1])


def test_without_resets_the_past_counts():
    rssm = random_rssm()
    whole = call(rssm, *INPUTS)
    fresh = call(rssm, *(x[0:1, 2:] for x in INPUTS))
    assert (np.abs(whole[0][0, 2:] - fresh[0][0]) > 1e-3).any()


def test_shapes():
    deter, stoch, logits = call(random_rssm(), *INPUTS)
    assert deter.shape == (3, 5, 16)
    assert stoch.shape == (3, 5, 4 * 3)
    assert logits.shape == (3, 5, 4, 3)
    latents = stoch.reshape(3, 5, 4, 3)
    np.testing.assert_array_equal(latents, np.eye(3)[logits.argmax(-1)])


def test_the_prior_sees_the_deterministic_state_alone():
    rssm = random_rssm()
    weights = numpy_weights(rssm)
    deter, _, _ = call(rssm, *INPUTS)
    prior = evaluate(lambda x: rssm.prior(rssm.tensors(), x), deter)
    assert prior.shape == (3, 5, 4, 3)
    for i in np.ndindex(3, 5):
        x = reference.mlp(weights, deter[i], 2, "prior{}", "prior{}norm")
        expected = reference.dense(weights, "priorlogit", x).reshape(4, 3)
        np.testing.assert_allclose(prior[i], expected, rtol=1e-3, atol=1e-4)


def test_latents_are_mixed_with_the_uniform():
    # 0.7 * [1, 0, 0] + 0.3 / 3 = [0.8, 0.1, 0.1]
    logits = ops.convert_to_tensor([[[100.0, 0.0, 0.0]]])
    spread = RSSM(16, 8, 1, 3, 4, unimix=0.3).latents(logits)
    np.testing.assert_allclose(
        to_numpy(spread.probs), [[[0.8, 0.1, 0.1]]], rtol=1e-6
    )
    assert spread.entropy().shape == (1,)


def test_names_and_shapes_of_the_reference():
    shapes = {
        name: tuple(weight.shape)
        for name, weight in random_rssm().named_weights().items()
        if not name.startswith("dyn") and name.endswith("kernel")
    }
    assert shapes == {
        "prior0/kernel": (16, 8),
        "prior1/kernel": (8, 8),
        "priorlogit/kernel": (8, 12),
        "obs0/kernel": (16 + 6, 8),
        "obslogit/kernel": (8, 12),
    }


def test_initial_weights():
    # 1 / sqrt(fan-in) with scale 1, also of the logits.
    rssm = RSSM(256, 64, 32, 8, 8, seed=0)
    rssm.build((None, None, 64), (None, None, 4))
    weights = numpy_weights(rssm)
    for name in ("prior0", "obs0", "priorlogit", "obslogit"):
        kernel = weights[f"{name}/kernel"]
        np.testing.assert_allclose(kernel.std(), len(kernel) ** -0.5, rtol=0.03)
        np.testing.assert_array_equal(
            weights.get(f"{name}/bias"), np.zeros(kernel.shape[-1])
        )


def test_every_part_has_weights_of_its_own():
    rssm = RSSM(16, 8, 4, 3, 4, seed=0)
    rssm.build((None, None, 6), (None, None, 2))
    kernels = [v for k, v in numpy_weights(rssm).items() if "kernel" in k]
    firsts = [kernel.ravel()[0] for kernel in kernels]
    assert len(set(firsts)) == len(firsts)


@pytest.mark.parametrize("layers", [(1, 2), (3, 1)])
def test_numbers_of_hidden_layers(layers):
    rssm = RSSM(16, 8, 4, 3, 4, imglayers=layers[0], obslayers=layers[1])
    rssm.build((None, None, 6), (None, None, 2))
    outputs = call(rssm, *INPUTS)
    assert outputs[2].shape == (3, 5, 4, 3)
    names = rssm.named_weights()
    for part, count in zip(("prior", "obs"), layers, strict=True):
        assert f"{part}{count - 1}/kernel" in names
        assert f"{part}{count}/kernel" not in names


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_keras_conventions(policy, tmp_path):
    keras.config.set_dtype_policy(policy)
    inputs = [ops.convert_to_tensor(x) for x in INPUTS]
    check_layer(random_rssm(seed=1), inputs, tmp_path)
    shapes = ((None, 5, 6), (None, 5, 2), (None, 5))
    assert RSSM(16, 8, 4, 3, 4).compute_output_shape(*shapes) == (
        (None, 5, 16),
        (None, 5, 12),
        (None, 5, 4, 3),
    )
