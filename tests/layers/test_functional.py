import gymnasium
import keras
import numpy as np
import numpy_reference as reference
import pytest
from backend_tools import gradients
from helpers import to_numpy
from keras import ops
from layer_checks import randomize

from keras_dreamer import layers
from keras_dreamer import spaces
from keras_dreamer.layers.functional import FunctionalLayer
from keras_dreamer.layers.functional import JoinedDense
from keras_dreamer.layers.functional import dense
from keras_dreamer.layers.functional import hidden
from keras_dreamer.layers.functional import known_dense
from keras_dreamer.layers.functional import rms_norm
from keras_dreamer.layers.functional import swap_batch_and_time
from keras_dreamer.layers.mlp import MLP
from keras_dreamer.layers.mlp import linear

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4)).astype("float32")


class Two(FunctionalLayer):
    """An MLP and a dense layer, under names of their own."""

    def __init__(self):
        super().__init__()
        self.mlp = MLP(1, 5)
        self.last = linear(2)

    def named_layers(self):
        return {"first": self.mlp, "deep": {"last": self.last}}

    def build(self, input_shape):
        self.mlp.build(input_shape)
        self.last.build((None, 5))

    def apply(self, tensors, inputs):
        x = self.mlp.apply(tensors["first"], inputs)
        return dense(tensors["deep"]["last"], x)


LEAVES = spaces.leaves(
    gymnasium.spaces.Dict(
        x=gymnasium.spaces.Box(-1, 1, (2,)), y=gymnasium.spaces.Discrete(3)
    ),
    "observation",
)
# What every layer of layers needs to be made.
ARGUMENTS = {
    "BlockGRU": (8, 4, 2),
    "BoundedNormal": ((2,),),
    "CategoricalHead": (3,),
    "ContinueHead": (),
    "Decoder": (LEAVES,),
    "Encoder": (LEAVES,),
    "MLP": (2, 4),
    "Policy": (LEAVES,),
    "RSSM": (16, 8, 4, 2),
    "TwoHotHead": (),
}


def test_all_layers_of_layers_are_known():
    assert set(ARGUMENTS) == {
        name
        for name, kind in vars(layers).items()
        if isinstance(kind, type) and issubclass(kind, FunctionalLayer)
    }


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16", "bfloat16"])
@pytest.mark.parametrize("name", ARGUMENTS)
def test_layers_inside_take_the_policy_of_the_layer(name, policy):
    keras.config.set_dtype_policy("mixed_float16")
    layer = getattr(layers, name)(*ARGUMENTS[name], dtype=policy)
    inside = layer._flatten_layers()
    assert len(inside) > 1
    assert {part.dtype_policy.name for part in inside} == {policy}


def tensors(**arrays):
    return {
        name: ops.convert_to_tensor(np.asarray(value, "float32"))
        for name, value in arrays.items()
    }


def test_named_weights_are_the_paths_of_the_parts():
    layer = Two()
    layer(X)
    named = layer.named_weights()
    assert list(named) == [
        "first/linear0/kernel",
        "first/linear0/bias",
        "first/norm0/scale",
        "deep/last/kernel",
        "deep/last/bias",
    ]
    assert {id(v) for v in named.values()} == {id(v) for v in layer.weights}


def test_call_applies_its_own_weights():
    layer = Two()
    layer.build(X.shape)
    randomize(layer)
    weights = {k: to_numpy(v) for k, v in layer.named_weights().items()}
    expected = [
        reference.dense(
            weights,
            "deep/last",
            reference.hidden(weights, "first/linear0", "first/norm0", x),
        )
        for x in X
    ]
    np.testing.assert_allclose(to_numpy(layer(X)), expected, rtol=1e-4)


def test_apply_takes_any_weights():
    layer = Two()
    layer(X)
    weights = layer.tensors()
    weights["deep"]["last"] = tensors(kernel=np.zeros((5, 2)), bias=[7.0, 8.0])
    np.testing.assert_array_equal(
        to_numpy(layer.apply(weights, X)), 3 * [[7.0, 8.0]]
    )


def test_weights_come_in_the_compute_dtype_but_scales_in_float32():
    layer = Two()
    layer.dtype_policy = "mixed_bfloat16"
    layer(X)
    found = layer.tensors()
    assert "bfloat16" in str(found["deep"]["last"]["kernel"].dtype)
    assert "bfloat16" in str(found["first"]["linear0"]["bias"].dtype)
    assert "float32" in str(found["first"]["norm0"]["scale"].dtype)


def test_a_subclass_names_its_parts_and_its_mathematics():
    with pytest.raises(NotImplementedError):
        FunctionalLayer().named_layers()
    with pytest.raises(NotImplementedError):
        FunctionalLayer().apply({})


def test_dense_matches_hand_computed_values():
    # 1 * 2 + 3 * 4 + 10 = 24
    weights = tensors(kernel=[[2.0], [4.0]], bias=[10.0])
    y = dense(weights, ops.convert_to_tensor([[1.0, 3.0]]))
    np.testing.assert_array_equal(to_numpy(y), [[24.0]])


def test_rms_norm_matches_hand_computed_values():
    # mean(3^2, 4^2) = 12.5: 3 / sqrt(12.5 + 3.5) * 2 = 1.5, 4 / 4 * 5 = 5
    y = rms_norm(
        tensors(scale=[2.0, 5.0]), ops.convert_to_tensor([[3.0, 4.0]]), 3.5
    )
    np.testing.assert_allclose(to_numpy(y), [[1.5, 5.0]], rtol=1e-6)


def test_hidden_matches_hand_computed_values():
    # Dense: 2 * 3 - 2 = 4, norm: 4 / sqrt(16 + 1e-4) * 0.5 = 0.499998,
    # SiLU: 0.5 * sigmoid(0.5) = 0.311229
    y = hidden(
        tensors(kernel=[[3.0]], bias=[-2.0]),
        tensors(scale=[0.5]),
        ops.convert_to_tensor([[2.0]]),
    )
    np.testing.assert_allclose(to_numpy(y), [[0.311229]], rtol=1e-4)


def test_joined_layers_are_the_layers():
    kernels = [RNG.normal(size=(4, n)).astype("float32") for n in (3, 1)]
    bias = RNG.normal(size=3).astype("float32")
    layers = {
        "wide": tensors(kernel=kernels[0], bias=bias),
        "bare": tensors(kernel=kernels[1]),
    }
    outputs = JoinedDense(layers)(ops.convert_to_tensor(X))
    assert list(outputs) == ["wide", "bare"]
    expected = {"wide": X @ kernels[0] + bias, "bare": X @ kernels[1]}
    for name, y in outputs.items():
        np.testing.assert_allclose(
            to_numpy(y), expected[name], rtol=1e-5, atol=1e-6
        )


def test_known_dense_has_the_gradients_of_dense():
    kernel = RNG.normal(size=(4, 2)).astype("float32")
    bias = RNG.normal(size=2).astype("float32")
    y = X @ kernel + bias
    x, output = map(ops.convert_to_tensor, (X, y))

    def known(kernel, bias):
        inputs = (x[:, :1], x[:, 1:])
        y = known_dense(ops.transpose(kernel), bias, inputs, output)
        return ops.sum(y**3)

    def plain(kernel, bias):
        return ops.sum(dense({"kernel": kernel, "bias": bias}, x) ** 3)

    pairs = zip(
        gradients(known, kernel, bias),
        gradients(plain, kernel, bias),
        strict=True,
    )
    for actual, expected in pairs:
        np.testing.assert_allclose(actual, expected, rtol=1e-4)


def test_swap_of_batch_and_time():
    x, nothing = swap_batch_and_time([ops.convert_to_tensor([[1, 2]]), None])
    assert nothing is None
    np.testing.assert_array_equal(to_numpy(x), [[1], [2]])


def test_known_dense_returns_what_is_known():
    kernel, bias = ops.ones((2, 4)), ops.ones(2)
    output = ops.convert_to_tensor(X[:, :2])
    y = known_dense(kernel, bias, (ops.convert_to_tensor(X),), output)
    np.testing.assert_array_equal(to_numpy(y), X[:, :2])
