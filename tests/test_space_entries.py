import numpy as np
import pytest
from gymnasium import spaces

from keras_dreamer.space_entries import BoundedNumbers
from keras_dreamer.space_entries import Classes
from keras_dreamer.space_entries import Numbers
from keras_dreamer.space_entries import is_discrete
from keras_dreamer.space_entries import make_entry
from keras_dreamer.space_entries import start

BOX = spaces.Box
KINDS = {
    Classes: [
        spaces.Discrete(3, start=-1),
        spaces.MultiDiscrete([2, 3]),
        spaces.MultiBinary(2),
        BOX(0, 1, (2,), bool),
    ],
    BoundedNumbers: [
        BOX(-2, 2, (2,)),
        BOX(0, 1, (1,), np.float16),
        BOX(-1e299, 1e299, (1,), np.float64),
    ],
    Numbers: [
        BOX(-np.inf, np.inf, (2,)),
        BOX(0, np.inf, (2,)),
        BOX(0, 9, (2,), np.int8),
        # One and a half times this bound is no float64.
        BOX(-1.7e308, 1, (1,), np.float64),
    ],
}


@pytest.mark.parametrize(
    "kind,space",
    [(kind, space) for kind, members in KINDS.items() for space in members],
    ids=str,
)
def test_kind_of_an_entry(kind, space):
    entry = make_entry(space)
    assert type(entry) is kind
    assert entry.shape == space.shape
    assert is_discrete(space) == (kind is Classes)


def test_first_class():
    assert start(spaces.Discrete(3, start=-1)) == -1
    assert start(spaces.MultiDiscrete([2, 3], start=[1, 5])).tolist() == [1, 5]
    assert start(spaces.MultiBinary(2)) == start(BOX(0, 1, (), bool)) == 0


def test_classes():
    entry = make_entry(spaces.MultiDiscrete([2, 3], start=[1, 5]))
    classes = entry.to_model(np.array([[1, 7], [2, 5]]))
    assert classes.dtype == "int32"
    assert classes.tolist() == [[0, 2], [1, 0]]
    assert entry.from_model(classes).tolist() == [[1, 7], [2, 5]]


def test_bounded_numbers_equal_a_loop():
    low, high = np.float32([-0.3, 10]), np.float32([1.1, 30])
    entry = make_entry(BOX(low, high))
    values = np.random.default_rng(0).normal(0, 1.5, (50, 2)).astype("float32")
    found = entry.from_model(values)
    assert found.dtype == "float32"
    for row, value in zip(found, values, strict=True):
        for number, x, a, b in zip(row, value, low, high, strict=True):
            share = (min(max(float(x), -1.0), 1.0) + 1) / 2
            expected = float(a) + share * (float(b) - float(a))
            assert number == pytest.approx(expected, rel=1e-6, abs=1e-7)
    assert (low <= found).all() and (found <= high).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_two_ways_to_scale_agree(dtype):
    low, high = np.array([[-3, 0.1], [1, 0.7]], dtype)
    space = BOX(low, high, dtype=dtype)
    values = np.linspace(-2, 2, 41, dtype="float32").repeat(2).reshape(-1, 2)
    found = BoundedNumbers(space).from_model(values)
    other = Numbers(space).from_model(values)
    assert found.dtype == other.dtype == dtype
    np.testing.assert_allclose(found, other, rtol=1e-15, atol=1e-15)
