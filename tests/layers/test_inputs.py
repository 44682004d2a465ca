import numpy as np
import pytest
from backend_tools import evaluate
from backend_tools import gradients
from helpers import to_numpy
from helpers import trace
from keras import ops
from layer_checks import as_float32

from keras_dreamer.layers.inputs import available
from keras_dreamer.layers.inputs import concat_inputs
from keras_dreamer.spaces import Leaf
from keras_dreamer.symlog import symlog

NUMBERS = Leaf("x", "continuous", (2,))
CLASSES = Leaf("n", "discrete", (2,), (3, 2))


def tensor(x, dtype="float32"):
    return ops.convert_to_tensor(np.asarray(x, dtype))


def test_numbers_are_missing_where_any_is_minus_infinity():
    value = [[0.0, 1.0], [-np.inf, 1.0], [np.inf, -1.0], [np.nan, 0.0]]
    np.testing.assert_array_equal(
        to_numpy(available(NUMBERS, tensor(value))), [True, False, True, True]
    )


def test_integers_are_missing_where_any_is_minus_one():
    value = tensor([[0, 1], [-1, 1], [2, -1]], "int32")
    np.testing.assert_array_equal(
        to_numpy(available(CLASSES, value)), [True, False, False]
    )


@pytest.mark.parametrize(
    "leaf, value",
    [
        (Leaf("x", "continuous", ()), [[0.0, -np.inf]]),
        (Leaf("n", "discrete", (), (3,)), np.int32([[0, -1]])),
    ],
)
def test_availability_of_scalars(leaf, value):
    value = ops.convert_to_tensor(np.asarray(value))
    np.testing.assert_array_equal(
        to_numpy(available(leaf, value)), [[True, False]]
    )


def test_availability_matches_a_loop():
    leaf = Leaf("x", "continuous", (2, 2))
    value = np.random.default_rng(0).normal(size=(5, 3, 2, 2))
    value[value < -1] = -np.inf
    expected = np.zeros((5, 3), bool)
    for index in np.ndindex(5, 3):
        expected[index] = np.isfinite(value[index]).all()
    assert 0 < expected.sum() < 15
    actual = to_numpy(available(leaf, tensor(value)))
    np.testing.assert_array_equal(actual, expected)


def test_concat_matches_hand_computed_values():
    # Keys in alphabetical order; 3 classes of 2, then the numbers as they are.
    values = {"n": tensor([[2, 0]], "int32"), "x": tensor([[0.5, -3.0]])}
    features = concat_inputs({"x": NUMBERS, "n": CLASSES}, values, "float32")
    np.testing.assert_array_equal(
        to_numpy(features), [[0, 0, 1, 1, 0, 0, 0.5, -3.0]]
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_reference_values(dtype):
    expected = trace("dictconcat")
    a, b = (np.asarray(expected[key], "float32") for key in "ab")
    leaves = {
        "m": Leaf("m", "discrete", (), (4,)),
        "b": Leaf("b", "continuous", (2,)),
        "a": Leaf("a", "continuous", (3,)),
    }
    values = {
        "a": tensor(a),
        "b": tensor(b),
        "m": tensor(expected["m"], "int32"),
    }
    features = concat_inputs(leaves, values, dtype, symlog)
    assert dtype in str(features.dtype)
    # The reference rounds to bfloat16 after symlog.
    rounding = 0.0 if dtype == "bfloat16" else 2**-8
    np.testing.assert_allclose(
        as_float32(features), expected["out"], rtol=rounding
    )


def test_squash_applies_to_numbers_only():
    values = {"n": tensor([[1, 1]], "int32"), "x": tensor([[4.0, 6.0]])}
    features = concat_inputs(
        {"x": NUMBERS, "n": CLASSES}, values, "float32", lambda x: x / 2
    )
    np.testing.assert_array_equal(
        to_numpy(features), [[0, 1, 0, 0, 1, 0, 2.0, 3.0]]
    )


def test_a_missing_key_is_zero_and_passes_on_no_gradient():
    def features(x, n):
        return concat_inputs(
            {"x": NUMBERS, "n": CLASSES}, {"x": x, "n": n}, "float32", symlog
        )

    x = np.float32([[-np.inf, 3.0], [1.0, 2.0]])
    n = np.int32([[0, 1], [0, -1]])
    actual = evaluate(features, x, n)
    np.testing.assert_array_equal(actual[0, 6:], 0.0)
    np.testing.assert_array_equal(actual[1, :6], 0.0)
    assert (actual[1, 6:] > 0).all() and actual[0, :6].sum() == 2
    number = ops.convert_to_tensor(n)
    (gradient,) = gradients(lambda x: ops.sum(features(x, number)), x)
    np.testing.assert_array_equal(gradient[0], 0.0)
    assert np.isfinite(gradient).all() and (gradient[1] > 0).all()


def test_concat_matches_a_loop():
    leaves = {
        "grid": Leaf("grid", "continuous", (2, 2)),
        "n": CLASSES,
        "one": Leaf("one", "discrete", (), (4,)),
        "scalar": Leaf("scalar", "continuous", ()),
    }
    rng = np.random.default_rng(1)
    values = {
        "grid": rng.normal(size=(3, 2, 2, 2)).astype("float32"),
        "n": rng.integers(-1, [3, 2], (3, 2, 2)).astype("int32"),
        "one": rng.integers(-1, 4, (3, 2)).astype("int32"),
        "scalar": rng.normal(size=(3, 2)).astype("float32"),
    }
    expected = np.zeros((3, 2, 4 + 6 + 4 + 1))
    for i in np.ndindex(3, 2):
        row = [np.ravel(values["grid"][i])]
        missing = (values["n"][i] < 0).any()
        for x in values["n"][i]:
            row.append(np.zeros(3) if missing else np.eye(3)[x])
        x = values["one"][i]
        row.append(np.zeros(4) if x < 0 else np.eye(4)[x])
        expected[i] = np.concatenate([*row, [values["scalar"][i]]])
    features = evaluate(
        lambda *x: concat_inputs(
            leaves, dict(zip(values, x, strict=True)), "float32"
        ),
        *values.values(),
    )
    np.testing.assert_allclose(features, expected, rtol=1e-6)
