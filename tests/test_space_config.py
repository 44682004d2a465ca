import json

import hypothesis
import numpy as np
import pytest
from gymnasium import spaces
from random_spaces import nested_spaces

from keras_dreamer.space_config import from_config
from keras_dreamer.space_config import to_config


@hypothesis.settings(max_examples=60, derandomize=True, deadline=None)
@hypothesis.given(nested_spaces())
def test_round_trip_through_json(space):
    text = json.dumps(to_config(space), allow_nan=False)
    restored = from_config(json.loads(text))
    assert restored == space
    assert to_config(restored) == to_config(space)


def test_bounds_are_kept_exactly():
    low = np.array([0.1, -np.inf, -3.0], "float32")
    high = np.array([np.inf, 7.7, 1e30], "float32")
    restored = from_config(to_config(spaces.Box(low, high)))
    np.testing.assert_array_equal(restored.low, low)
    np.testing.assert_array_equal(restored.high, high)


def test_integer_bounds_at_infinity_stay_unbounded():
    space = spaces.Box(-np.inf, np.inf, (2,), np.int32)
    restored = from_config(to_config(space))
    assert not restored.bounded_below.any()
    assert not restored.bounded_above.any()
    assert restored.high[0] == space.high[0] == 2**31 - 1


def test_dtype_of_discrete_is_kept():
    try:
        space = spaces.Discrete(3, dtype=np.int32)
    except TypeError:
        pytest.skip("This gymnasium version has int64 only.")
    assert from_config(to_config(space)).dtype == "int32"


def test_equal_bounds_are_stored_once():
    assert to_config(spaces.Box(-1, 1, (100,))) == {
        "type": "Box",
        "low": -1.0,
        "high": 1.0,
        "shape": [100],
        "dtype": "float32",
    }


def test_unknown_spaces_are_refused():
    with pytest.raises(ValueError, match="needs to be one of.*Text"):
        to_config(spaces.Text(3))
    with pytest.raises(ValueError, match="type='Text'.*to_config"):
        from_config({"type": "Text"})
