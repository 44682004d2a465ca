import gymnasium
import keras
import numpy as np
import numpy_reference as reference
from backend_tools import evaluate
from helpers import to_numpy
from keras import ops
from layer_checks import as_float32
from layer_checks import check_layer
from layer_checks import numpy_weights
from layer_checks import randomize

from keras_dreamer.layers import Encoder
from keras_dreamer.layers.encoder import leaves_from_config
from keras_dreamer.layers.encoder import leaves_to_config
from keras_dreamer.spaces import leaves

SPACE = gymnasium.spaces.Dict(
    {
        "arm": gymnasium.spaces.Dict(
            {"angles": gymnasium.spaces.Box(-9, 9, (2, 2))}
        ),
        "height": gymnasium.spaces.Box(-9, 9, ()),
        "mode": gymnasium.spaces.Discrete(3),
    }
)
LEAVES = leaves(SPACE, "observation")
RNG = np.random.default_rng(0)
OBSERVATION = {
    "arm/angles": RNG.normal(size=(4, 3, 2, 2)).astype("float32") * 5,
    "height": RNG.normal(size=(4, 3)).astype("float32") * 5,
    "mode": RNG.integers(0, 3, (4, 3)).astype("int32"),
}


def tensors(observation):
    return {k: ops.convert_to_tensor(v) for k, v in observation.items()}


def call(encoder, observation):
    if not encoder.built:
        encoder.build()
    keys = list(observation)
    return evaluate(
        lambda *values: encoder(dict(zip(keys, values, strict=True))),
        *observation.values(),
    )


def encode(weights, index, layers=2, observation=OBSERVATION):
    numbers = [
        np.ravel(observation[key][index]) for key in ("arm/angles", "height")
    ]
    x = np.concatenate(numbers)
    x = np.sign(x) * np.log1p(np.abs(x))
    x = np.concatenate([x, np.eye(3)[observation["mode"][index]]])
    return reference.mlp(weights, x, layers, "mlp{}", "mlp{}norm")


def test_matches_hand_computed_values():
    # symlog(e - 1) = 1; dense: 1 * 3 + 1 = 4; norm: 4 / sqrt(16 + 1e-4) = 1;
    # SiLU: sigmoid(1) = 0.731057
    space = gymnasium.spaces.Box(-9, 9, (1,))
    encoder = Encoder(leaves(space, "observation"), 1, 1)
    encoder.build()
    for weight, value in zip(
        encoder.weights, ([[3.0]], [1.0], [1.0]), strict=True
    ):
        weight.assign(value)
    tokens = encoder({"observation": ops.convert_to_tensor([[np.e - 1]])})
    np.testing.assert_allclose(to_numpy(tokens), [[0.731057]], rtol=1e-4)


def test_matches_a_loop():
    encoder = Encoder(LEAVES, 2, 8)
    encoder.build()
    randomize(encoder)
    weights = numpy_weights(encoder)
    assert weights["mlp0/kernel"].shape == (4 + 1 + 3, 8)
    tokens = call(encoder, OBSERVATION)
    for i in np.ndindex(4, 3):
        np.testing.assert_allclose(
            tokens[i], encode(weights, i), rtol=1e-4, atol=1e-5
        )


def test_the_order_of_the_keys_does_not_matter():
    backwards = {key: LEAVES[key] for key in reversed(LEAVES)}
    one, other = Encoder(LEAVES, 1, 8, seed=3), Encoder(backwards, 1, 8, seed=3)
    np.testing.assert_array_equal(
        call(one, OBSERVATION), call(other, OBSERVATION)
    )


def test_missing_keys_count_as_zeros():
    encoder = Encoder(LEAVES, 1, 8, seed=0)
    missing = {**OBSERVATION, "height": OBSERVATION["height"].copy()}
    missing["height"][0] = -np.inf
    zeros = {**OBSERVATION, "height": OBSERVATION["height"].copy()}
    zeros["height"][0] = 0.0
    np.testing.assert_array_equal(call(encoder, missing), call(encoder, zeros))


def test_initial_weights():
    # 1 / sqrt(100) = 0.1 and 1 / sqrt(256) = 0.0625
    space = gymnasium.spaces.Box(-9, 9, (100,))
    encoder = Encoder(leaves(space, "observation"), 2, 256, seed=0)
    encoder.build()
    weights = numpy_weights(encoder)
    np.testing.assert_allclose(weights["mlp0/kernel"].std(), 0.1, rtol=0.02)
    np.testing.assert_allclose(weights["mlp1/kernel"].std(), 0.0625, rtol=0.02)


def test_keras_conventions(tmp_path):
    keras.config.set_dtype_policy("mixed_bfloat16")
    # Keras wants the names of inputs to be their keys, without slashes.
    space = gymnasium.spaces.Dict({**SPACE, "arm": SPACE["arm"]["angles"]})
    observation = {**OBSERVATION, "arm": OBSERVATION["arm/angles"]}
    observation.pop("arm/angles")
    encoder = Encoder(leaves(space, "observation"), 1, 8, seed=1)
    check_layer(encoder, tensors(observation), tmp_path)
    shapes = {k: (None, *v.shape[1:]) for k, v in observation.items()}
    assert encoder.compute_output_shape(shapes) == (None, 3, 8)


def test_numbers_are_squashed_before_they_are_rounded():
    keras.config.set_dtype_policy("mixed_bfloat16")
    space = gymnasium.spaces.Box(-9, 9, (64,))
    encoder = Encoder(leaves(space, "x"), 1, 4)
    encoder.build()
    x = np.linspace(100, 1000, 64, dtype="float32")[None]
    # The dense layer subtracts what one feature should be: nothing is left.
    right = as_float32(ops.cast(np.log1p(x), "bfloat16"))
    early = as_float32(ops.cast(x, "bfloat16"))
    early = as_float32(ops.cast(np.log1p(early), "bfloat16"))
    assert (right != early).any()
    unit = np.zeros((64, 4), "float32")
    column = np.flatnonzero(right[0] != early[0])[0]
    unit[column] = 1.0
    encoder.mlp.denses[0].set_weights([unit, np.full(4, -right[0, column])])
    tokens = encoder({"x": ops.convert_to_tensor(x)})
    np.testing.assert_array_equal(as_float32(tokens), np.zeros((1, 4)))


def test_leaves_round_trip():
    assert leaves_from_config(leaves_to_config(LEAVES)) == LEAVES
