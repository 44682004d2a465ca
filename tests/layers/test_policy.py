import gymnasium
import keras
import numpy as np
import numpy_reference as reference
from backend_tools import evaluate
from helpers import to_numpy
from keras import ops
from layer_checks import check_layer
from layer_checks import numpy_weights
from layer_checks import randomize

from keras_dreamer.distributions import Categorical
from keras_dreamer.distributions import Normal
from keras_dreamer.layers import Policy
from keras_dreamer.spaces import leaves

SPACE = gymnasium.spaces.Dict(
    {
        "car": gymnasium.spaces.Dict(
            {"gear": gymnasium.spaces.MultiDiscrete([3, 2])}
        ),
        "fire": gymnasium.spaces.Discrete(2),
        "move": gymnasium.spaces.Box(-1, 1, (3,)),
    }
)
LEAVES = leaves(SPACE, "action")
X = np.random.default_rng(0).normal(size=(4, 5)).astype("float32")


def test_matches_hand_computed_values():
    # Dense: 2 * 2 = 4, norm: 1, SiLU: sigmoid(1) = 0.731057; mean: tanh of
    # that times 2 = 0.898; std: 0.9 * sigmoid(2) + 0.1 = 0.892717
    space = gymnasium.spaces.Box(-1, 1, ())
    policy = Policy(leaves(space, "action"), 1, 1)
    policy.build((None, 1))
    values = ([[2.0]], [0.0], [1.0], [[2.0]], [0.0], [[0.0]], [0.0])
    weights = policy.named_weights().values()
    for weight, value in zip(weights, values, strict=True):
        weight.assign(value)
    mean, std = policy(ops.convert_to_tensor([[2.0]]))["action"]
    np.testing.assert_allclose(to_numpy(mean), [0.898021], rtol=1e-4)
    np.testing.assert_allclose(to_numpy(std), [0.892717], rtol=1e-5)


def test_matches_a_loop():
    policy = Policy(LEAVES, 2, 8)
    policy.build(X.shape)
    randomize(policy)
    weights, outputs = numpy_weights(policy), evaluate(policy, X)
    for row, x in enumerate(X):
        hidden = reference.mlp(weights, x, 2)
        for key, shape in (("fire", (2,)), ("car/gear", (2, 3))):
            logits = reference.dense(weights, f"head/{key}/logits", hidden)
            np.testing.assert_allclose(
                outputs[key][row],
                logits.reshape(shape),
                rtol=1e-3,
                atol=1e-5,
            )
        raw = reference.dense(weights, "head/move/mean", hidden)
        mean, std = outputs["move"]
        np.testing.assert_allclose(
            mean[row], np.tanh(raw), rtol=1e-3, atol=1e-5
        )
        raw = reference.dense(weights, "head/move/stddev", hidden)
        np.testing.assert_allclose(
            std[row], 0.9 * reference.sigmoid(raw + 2) + 0.1, rtol=1e-4
        )


def test_distributions():
    policy = Policy(LEAVES, 1, 8, unimix=0.5, outscale=0.0)
    spreads = policy.distributions(policy(X))
    assert list(spreads) == ["car/gear", "fire", "move"]
    assert isinstance(spreads["move"], Normal)
    assert isinstance(spreads["car/gear"], Categorical)
    # log 2; log 3 + log 2; 3 * (0.5 * log(2 pi e) + log(0.892717))
    for key, entropy in (("fire", 0.693147), ("car/gear", 1.791759)):
        np.testing.assert_allclose(
            to_numpy(spreads[key].entropy()), entropy, rtol=1e-5
        )
    np.testing.assert_allclose(
        to_numpy(spreads["move"].entropy()), 3.916361, rtol=1e-5
    )


def test_unimix_and_widths_reach_the_heads():
    policy = Policy(LEAVES, 1, 8, unimix=0.5, minstd=0.3, maxstd=0.3)
    policy.build(X.shape)
    weights = policy.named_weights()
    weights["head/fire/logits/bias"].assign([100.0, 0.0])
    outputs = policy(X)
    probs = policy.distributions(outputs)["fire"].probs
    # 0.5 * [1, 0] + 0.5 * [0.5, 0.5]
    np.testing.assert_allclose(to_numpy(probs), 4 * [[0.75, 0.25]], rtol=1e-6)
    np.testing.assert_allclose(to_numpy(outputs["move"][1]), 0.3, rtol=1e-6)


def test_initial_weights():
    # Hidden 1 / sqrt(64) = 0.125, outputs 0.01 / sqrt(256) = 0.000625
    space = gymnasium.spaces.Dict(
        {
            "a": gymnasium.spaces.Box(-1, 1, (100,)),
            "b": gymnasium.spaces.Discrete(100),
        }
    )
    policy = Policy(leaves(space, "action"), 1, 256, seed=0)
    policy.build((None, 64))
    weights = numpy_weights(policy)
    np.testing.assert_allclose(
        weights["mlp/linear0/kernel"].std(), 0.125, rtol=0.02
    )
    for name in ("a/mean", "a/stddev", "b/logits"):
        np.testing.assert_allclose(
            weights[f"head/{name}/kernel"].std(), 0.000625, rtol=0.02
        )


def test_keras_conventions(tmp_path):
    keras.config.set_dtype_policy("mixed_bfloat16")
    policy = Policy(LEAVES, 1, 8, outscale=1.0, seed=1)
    check_layer(policy, ops.convert_to_tensor(X), tmp_path)
    for x in keras.tree.flatten(policy(X)):
        assert "float32" in str(x.dtype)
    assert policy.compute_output_shape((None, 7, 5)) == {
        "fire": (None, 7, 2),
        "car/gear": (None, 7, 2, 3),
        "move": ((None, 7, 3), (None, 7, 3)),
    }
