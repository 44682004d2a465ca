import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import batch_space

from keras_dreamer.space_inverses import action_to_model
from keras_dreamer.space_inverses import observation_from_model
from keras_dreamer.spaces import from_model
from keras_dreamer.spaces import to_model

NESTED = spaces.Dict(
    angles=spaces.Box(-4, 4, (2,), np.float64),
    count=spaces.Box(-100, 100, (3,), np.int16),
    gear=spaces.Discrete(3, start=5),
    pair=spaces.Tuple(
        [spaces.MultiBinary(4), spaces.MultiDiscrete([3, 2], start=[1, -1])]
    ),
    flag=spaces.Box(0, 1, (2,), bool),
)


def sample(space, count=50):
    batched = batch_space(space, count)
    batched.seed(0)
    return batched.sample()


def assert_same(actual, expected):
    if isinstance(expected, dict):
        assert actual.keys() == expected.keys()
        for key, value in expected.items():
            assert_same(actual[key], value)
    elif isinstance(expected, tuple):
        for one, other in zip(actual, expected, strict=True):
            assert_same(one, other)
    else:
        assert actual.dtype == expected.dtype
        np.testing.assert_allclose(actual, expected, rtol=1e-6)


@pytest.mark.parametrize(
    "space", [NESTED, NESTED["pair"], NESTED["gear"], NESTED["angles"]], ids=str
)
def test_observations_come_back(space):
    observation = sample(space)
    values = to_model(space, observation, "observation")
    assert_same(observation_from_model(space, values), observation)


def test_marks_of_what_is_missing_come_back():
    space = spaces.Dict(
        x=spaces.Box(-9, 9, (1,)), n=spaces.Discrete(3, start=5)
    )
    values = {"x": np.array([[-np.inf]]), "n": np.array([-1])}
    back = observation_from_model(space, values)
    assert back["x"].tolist() == [[-np.inf]] and back["n"].tolist() == [4]


@pytest.mark.parametrize(
    "space,action,expected",
    [
        (spaces.Box(-2, 2, (3,)), [-2, 0, 1], [-1, 0, 0.5]),
        (spaces.Box(0, 800, (2,)), [200, 800], [-0.5, 1]),
        (spaces.Box(0, 10, (2,), np.int64), [0, 5], [-1, 0]),
        # No scale: as they are.
        (spaces.Box(-np.inf, np.inf, (1,)), [7], [7]),
        (spaces.Box(0, np.inf, (1,)), [0.25], [0.25]),
        (spaces.Box(3, 3, (1,)), [3], [-1]),
        (spaces.MultiDiscrete([3, 2], start=[1, 1]), [3, 1], [2, 0]),
    ],
    ids=str,
)
def test_actions_by_hand(space, action, expected):
    found = action_to_model(space, np.array([action], space.dtype))
    assert found["action"].tolist() == [expected]
    assert (
        found["action"].dtype
        == to_model(space, [action], "action")["action"].dtype
    )


def test_actions_come_back():
    action = sample(NESTED)
    values = action_to_model(NESTED, action)
    assert_same(from_model(NESTED, values, "action"), action)
