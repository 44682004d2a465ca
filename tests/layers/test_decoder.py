import gymnasium
import keras
import numpy as np
import numpy_reference as reference
import pytest
from backend_tools import evaluate
from backend_tools import fast
from backend_tools import gradients
from helpers import to_numpy
from keras import ops
from layer_checks import check_layer
from layer_checks import numpy_weights
from layer_checks import randomize

from keras_dreamer.layers import Decoder
from keras_dreamer.layers.decoder import categorical_of
from keras_dreamer.spaces import leaves

SPACE = gymnasium.spaces.Dict(
    {
        "arm": gymnasium.spaces.Dict(
            {"grid": gymnasium.spaces.Box(-9, 9, (2, 2))}
        ),
        "height": gymnasium.spaces.Box(-9, 9, ()),
        "keys": gymnasium.spaces.MultiDiscrete([3, 2]),
        "mode": gymnasium.spaces.Discrete(4),
    }
)
LEAVES = leaves(SPACE, "observation")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 3, 5)).astype("float32")
OBSERVATION = {
    "arm/grid": RNG.normal(size=(4, 3, 2, 2)).astype("float32") * 5,
    "height": RNG.normal(size=(4, 3)).astype("float32") * 5,
    "keys": RNG.integers(0, [3, 2], (4, 3, 2)).astype("int32"),
    "mode": RNG.integers(0, 4, (4, 3)).astype("int32"),
}
SHAPES = {"arm/grid": (2, 2), "height": (), "keys": (2, 3), "mode": (4,)}


def tensors(observation):
    return {k: ops.convert_to_tensor(v) for k, v in observation.items()}


def random_decoder():
    decoder = Decoder(LEAVES, 2, 8)
    decoder.build(X.shape)
    randomize(decoder)
    return decoder


def test_matches_hand_computed_values():
    # Dense: 2 * 2 = 4, norm: 1, SiLU: sigmoid(1) = 0.731057 (as always, the
    # epsilon of 1e-4 barely counts); output: 0.731057 * 2 + 1 = 2.462114
    # Loss against symlog(e - 1) = 1: 1.462114^2 = 2.137777
    space = gymnasium.spaces.Box(-9, 9, (1,))
    decoder = Decoder(leaves(space, "observation"), 1, 1)
    decoder.build((None, 1))
    values = ([[2.0]], [0.0], [1.0], [[2.0]], [1.0])
    names = decoder.named_weights()
    assert list(names)[3:] == [
        "vec/observation/pred/kernel",
        "vec/observation/pred/bias",
    ]
    for weight, value in zip(names.values(), values, strict=True):
        weight.assign(value)
    predictions = decoder(ops.convert_to_tensor([[2.0]]))
    np.testing.assert_allclose(
        to_numpy(predictions["observation"]), [[2.462114]], rtol=1e-4
    )
    target = ops.convert_to_tensor(np.float32([[np.e - 1]]))
    losses = decoder.losses_of(predictions, {"observation": target})
    np.testing.assert_allclose(
        to_numpy(losses["observation"]), [2.137777], rtol=1e-4
    )


def test_matches_a_loop():
    decoder = random_decoder()
    weights = numpy_weights(decoder)
    predictions, losses = evaluate(predict_and_compare(decoder), X)
    for i in np.ndindex(4, 3):
        hidden = reference.mlp(weights, X[i], 2)
        for key, shape in SHAPES.items():
            kind = "pred" if key in ("arm/grid", "height") else "logits"
            value = reference.dense(weights, f"vec/{key}/{kind}", hidden)
            value = value.reshape(shape)
            np.testing.assert_allclose(
                predictions[key][i], value, rtol=1e-3, atol=1e-5
            )
            loss = loss_of(key, value, OBSERVATION[key][i])
            np.testing.assert_allclose(
                losses[key][i], loss, rtol=1e-3, atol=1e-5
            )


def predict_and_compare(decoder, observation=OBSERVATION):
    def both(x):
        predictions = decoder(x)
        losses = decoder.losses_of(predictions, tensors(observation))
        return predictions, losses

    return both


def loss_of(key, value, target):
    """Item 2.11."""
    if key in ("arm/grid", "height"):
        squashed = np.sign(target) * np.log1p(np.abs(target))
        return np.sum((value - squashed) ** 2)
    sizes = {"keys": [3, 2], "mode": [4]}[key]
    rows = zip(np.atleast_2d(value), np.ravel(target), sizes, strict=True)
    return sum(-np.log(reference.softmax(v[:n])[t]) for v, t, n in rows)


def test_a_missing_key_costs_nothing_and_passes_on_no_gradient():
    decoder = random_decoder()
    missing = {key: value.copy() for key, value in OBSERVATION.items()}
    missing["arm/grid"][0, 0, 1] = -np.inf
    missing["height"][0] = -np.inf
    missing["keys"][:, 1, 0] = -1
    missing["mode"][3, 2] = -1
    gone = {key: np.zeros((4, 3), bool) for key in missing}
    gone["arm/grid"][0, 0] = gone["height"][0] = True
    gone["keys"][:, 1] = gone["mode"][3, 2] = True
    outputs, full = evaluate(predict_and_compare(decoder), X)
    _, part = evaluate(predict_and_compare(decoder, missing), X)
    for key in missing:
        expected = np.where(gone[key], 0.0, full[key])
        np.testing.assert_allclose(part[key], expected, rtol=1e-6)
        assert (expected[~gone[key]] > 0).all()

    keys, target = list(missing), tensors(missing)

    def total(*predictions):
        predictions = dict(zip(keys, predictions, strict=True))
        return ops.sum(sum(decoder.losses_of(predictions, target).values()))

    found = gradients(total, *outputs.values())
    for key, gradient in zip(keys, found, strict=True):
        assert np.isfinite(gradient).all()
        np.testing.assert_array_equal(gradient[gone[key]], 0.0)
        assert np.abs(gradient[~gone[key]]).max() > 0.1


@pytest.mark.parametrize("outscale", [1.0, 0.1])
def test_initial_weights(outscale):
    # Hidden: 1 / sqrt(64) = 0.125. Outputs: outscale / sqrt(256)
    space = gymnasium.spaces.Dict(
        {
            "a": gymnasium.spaces.Box(-9, 9, (100,)),
            "b": gymnasium.spaces.Discrete(100),
        }
    )
    decoder = Decoder(leaves(space, "x"), 1, 256, outscale, seed=0)
    decoder.build((None, 64))
    weights = numpy_weights(decoder)
    np.testing.assert_allclose(
        weights["mlp/linear0/kernel"].std(), 0.125, rtol=0.02
    )
    kernels = [weights["vec/a/pred/kernel"], weights["vec/b/logits/kernel"]]
    for kernel in kernels:
        np.testing.assert_allclose(kernel.std(), outscale / 16, rtol=0.02)
    assert (kernels[0] != kernels[1]).all()


def test_keras_conventions(tmp_path):
    keras.config.set_dtype_policy("mixed_bfloat16")
    decoder = Decoder(LEAVES, 1, 8, seed=1)
    check_layer(decoder, ops.convert_to_tensor(X), tmp_path)
    predictions, losses = fast(predict_and_compare(decoder))(X)
    for key, shape in SHAPES.items():
        assert predictions[key].shape == (4, 3, *shape)
        assert "float32" in str(predictions[key].dtype)
    assert decoder.compute_output_shape((None, 3, 5)) == {
        key: (None, 3, *shape) for key, shape in SHAPES.items()
    }
    for loss in losses.values():
        assert loss.shape == (4, 3) and "float32" in str(loss.dtype)


def test_categorical_of_unequal_sizes():
    spread = categorical_of(LEAVES["keys"], ops.zeros((1, 2, 3)))
    expected = [[[1 / 3, 1 / 3, 1 / 3], [1 / 2, 1 / 2, 0.0]]]
    np.testing.assert_allclose(to_numpy(spread.probs), expected, rtol=1e-6)
    # log 3 + log 2 = 1.791759
    np.testing.assert_allclose(to_numpy(spread.entropy()), 1.791759, rtol=1e-6)
