import keras
import numpy as np
import numpy_reference as reference
import pytest
from backend_tools import evaluate
from backend_tools import gradients
from keras import ops
from layer_checks import check_layer
from layer_checks import numpy_weights
from layer_checks import randomize

from keras_dreamer.layers import BlockGRU

RNG = np.random.default_rng(0)
INPUTS = [
    RNG.normal(size=(3, width)).astype("float32") * 2 for width in (16, 6, 2)
]


def random_gru(**kwargs):
    gru = BlockGRU(16, 8, 4, **kwargs)
    gru.build(*((None, x.shape[-1]) for x in INPUTS))
    randomize(gru)
    return gru


def call(gru, *inputs):
    return evaluate(gru, *inputs)


def test_matches_hand_computed_values():
    # Zero kernels leave the gates' bias: reset log 3, candidate 2, update
    # 1 + log 3. sigmoid(log 3) = 3/4, so that the next state is
    # 3/4 * tanh(3/4 * 2) + 1/4 * deter = 0.678861 + deter / 4
    gru = random_gru()
    for name, weight in gru.named_weights().items():
        if name.startswith("dyngru"):
            weight.assign(np.zeros(weight.shape))
    # In every one of the 4 blocks: 4 resets, 4 candidates, 4 updates.
    gates = np.repeat([np.log(3.0), 2.0, 1 + np.log(3.0)], 4)
    gru.named_weights()["dyngru/bias"].assign(np.tile(gates, 4))
    np.testing.assert_allclose(
        call(gru, *INPUTS), 0.678861 + INPUTS[0] / 4, rtol=1e-4
    )


def test_matches_algorithm_a():
    gru = random_gru()
    weights, state = numpy_weights(gru), call(gru, *INPUTS)
    assert (np.abs(INPUTS[2]) > 1).any()
    for row in range(3):
        expected = reference.gru(weights, *(x[row] for x in INPUTS), blocks=4)
        np.testing.assert_allclose(state[row], expected, rtol=1e-4, atol=1e-5)


def test_names_and_shapes_of_the_reference():
    shapes = {
        k: tuple(v.shape) for k, v in random_gru().named_weights().items()
    }
    assert shapes == {
        "dynin0/kernel": (16, 8),
        "dynin0/bias": (8,),
        "dynin0norm/scale": (8,),
        "dynin1/kernel": (6, 8),
        "dynin1/bias": (8,),
        "dynin1norm/scale": (8,),
        "dynin2/kernel": (2, 8),
        "dynin2/bias": (8,),
        "dynin2norm/scale": (8,),
        # Per block: 16 / 4 own features and 3 * 8 embeddings.
        "dynhid0/kernel": (4, 28, 4),
        "dynhid0/bias": (16,),
        "dynhid0norm/scale": (16,),
        "dyngru/kernel": (4, 4, 12),
        "dyngru/bias": (48,),
    }


def test_initial_weights():
    # 1 / sqrt(fan-in), of the whole input for both block kernels:
    # 8 * (32 + 3 * 64) = 1792 and 256.
    gru = BlockGRU(256, 64, 8, seed=0)
    gru.build((None, 256), (None, 100), (None, 4))
    weights = numpy_weights(gru)
    for name, fan_in in (("dynin0", 256), ("dynhid0", 1792), ("dyngru", 256)):
        np.testing.assert_allclose(
            weights[f"{name}/kernel"].std(), fan_in**-0.5, rtol=0.02
        )


def test_a_new_cell_keeps_most_of_its_state():
    # Without inputs the update gate is sigmoid(-1) = 0.268941, the candidate 0.
    gru = BlockGRU(16, 8, 4)
    gru.build((None, 16), (None, 6), (None, 2))
    weights = gru.named_weights()
    weights["dyngru/kernel"].assign(np.zeros((4, 4, 12)))
    np.testing.assert_allclose(
        call(gru, *INPUTS), 0.731059 * INPUTS[0], rtol=1e-4
    )


def test_blocks_exchange_information_through_the_embedding_alone():
    gru = random_gru()
    weights = gru.named_weights()
    changed = INPUTS[0].copy()
    changed[:, :4] += 1.0  # The first block.
    for mixing in (True, False):
        if not mixing:
            weights["dynin0/kernel"].assign(np.zeros((16, 8)))
            # The norm of `dynhid0` runs over all blocks.
            weights["dynhid0norm/scale"].assign(np.zeros(16))
        one = call(gru, *INPUTS)
        other = call(gru, changed, *INPUTS[1:])
        assert (one[:, 4:] != other[:, 4:]).any() == mixing


def test_large_actions_count_as_one_and_keep_a_gradient():
    gru = random_gru()
    deter, stoch, action = INPUTS
    action = np.float32([[3.0, -0.5], [-7.0, 1.0], [0.2, 2.0]])
    np.testing.assert_allclose(
        call(gru, deter, stoch, action),
        call(gru, deter, stoch, np.clip(action, -1, 1)),
        rtol=1e-5,
    )

    def total(action):
        return ops.sum(gru(*map(ops.convert_to_tensor, INPUTS[:2]), action))

    # d(a / sg(max(1, |a|))) = 1 / max(1, |a|)
    (gradient,) = gradients(total, action)
    (clipped,) = gradients(total, np.clip(action, -1, 1))
    np.testing.assert_allclose(
        gradient,
        clipped / np.maximum(1, np.abs(action)),
        rtol=1e-3,
        atol=1e-6,
    )


def test_keras_conventions(tmp_path):
    keras.config.set_dtype_policy("mixed_bfloat16")
    gru = random_gru(seed=1)
    check_layer(gru, [ops.convert_to_tensor(x) for x in INPUTS], tmp_path)
    assert {w.dtype for w in gru.weights} == {"float32"}
    shapes = [(None, 7, x.shape[-1]) for x in INPUTS]
    assert gru.compute_output_shape(*shapes) == (None, 7, 16)


def test_any_leading_axes():
    gru = random_gru()
    wide = [np.broadcast_to(x, (2, *x.shape)) for x in INPUTS]
    np.testing.assert_allclose(
        call(gru, *wide), 2 * [call(gru, *INPUTS)], rtol=1e-5, atol=1e-6
    )


def test_deter_must_be_a_multiple_of_the_blocks():
    with pytest.raises(ValueError, match=r"multiple of `blocks`.*blocks=3"):
        BlockGRU(16, 8, 3)
