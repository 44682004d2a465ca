import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import batch_space
from random_spaces import nested_spaces

from keras_dreamer.spaces import Converter
from keras_dreamer.spaces import Leaf
from keras_dreamer.spaces import from_config
from keras_dreamer.spaces import from_model
from keras_dreamer.spaces import leaves
from keras_dreamer.spaces import to_config
from keras_dreamer.spaces import to_model

NESTED = spaces.Dict(
    reward=spaces.Box(-1, 1, ()),
    arm=spaces.Dict(
        angles=spaces.Box(-4, 4, (2,), np.float64),
        gear=spaces.Discrete(3, start=5),
    ),
    pair=spaces.Tuple([spaces.MultiBinary(4), spaces.MultiDiscrete([3, 2])]),
    is_first=spaces.Box(0, 1, (2,), dtype=np.bool_),
)


def test_leaves_of_a_nested_space():
    assert list(leaves(NESTED, "observation").values()) == [
        Leaf("arm/angles", "continuous", (2,)),
        Leaf("arm/gear", "discrete", (), (3,)),
        Leaf("is_first", "discrete", (2,), (2, 2)),
        Leaf("pair/0", "discrete", (4,), (2, 2, 2, 2)),
        Leaf("pair/1", "discrete", (2,), (3, 2)),
        Leaf("reward", "continuous", ()),
    ]


@pytest.mark.parametrize(
    "space, classes, size, width, dtype",
    [
        (spaces.Box(-1, 1, (2, 3)), 0, 6, 6, "float32"),
        (spaces.Box(0, 9, (64, 64), np.float64), 0, 4096, 4096, "float32"),
        (spaces.Box(0, 255, (7,), np.uint8), 0, 7, 7, "float32"),
        (spaces.Box(-9, 9, (4, 5, 6)), 0, 120, 120, "float32"),
        (spaces.Discrete(1), 1, 1, 1, "int32"),
        (spaces.MultiDiscrete([3, 2, 5]), 5, 3, 15, "int32"),
        (spaces.MultiDiscrete([[3, 2], [1, 1]]), 3, 4, 12, "int32"),
    ],
    ids=str,
)
def test_leaf_sizes(space, classes, size, width, dtype):
    [(key, leaf)] = leaves(space, "action").items()
    assert key == leaf.key == "action"
    assert leaf.shape == space.shape
    assert (leaf.classes, leaf.size, leaf.width) == (classes, size, width)
    assert leaf.dtype == dtype
    assert leaf.discrete == (dtype == "int32")


def test_top_level_tuple_keeps_the_name():
    space = spaces.Tuple([spaces.Discrete(2), spaces.Box(0, 1, (3,))])
    assert list(leaves(space, "action")) == ["action/0", "action/1"]


@pytest.mark.parametrize(
    "space",
    [
        spaces.Text(3),
        spaces.Sequence(spaces.Discrete(2)),
        spaces.Graph(spaces.Box(0, 1, (2,)), None),
        spaces.OneOf([spaces.Discrete(2), spaces.Box(0, 1, (2,))]),
    ],
    ids=lambda space: type(space).__name__,
)
def test_unsupported_space_is_named(space):
    with pytest.raises(ValueError, match=r"observation entry 'bad'.*Received"):
        leaves(spaces.Dict(bad=space, good=spaces.Discrete(2)), "observation")


def test_picture_is_named():
    space = spaces.Dict(camera=spaces.Box(0, 255, (5, 5, 5), np.uint8))
    with pytest.raises(ValueError, match=r"'camera' looks like a picture.*"):
        leaves(space, "observation")


@pytest.mark.parametrize(
    "space", [spaces.Dict(), spaces.Dict(a=spaces.Dict()), spaces.Tuple([])]
)
def test_empty_space_is_refused(space):
    with pytest.raises(ValueError, match="at least one entry"):
        leaves(space, "observation")


def test_zero_size_is_refused():
    space = spaces.Dict(nothing=spaces.Box(0, 1, (0,)))
    with pytest.raises(ValueError, match=r"'nothing'.*shape=\(0,\)"):
        leaves(space, "observation")


def test_colliding_names_are_refused():
    space = spaces.Dict(
        {
            "a/b": spaces.Discrete(2),
            "a": spaces.Dict(b=spaces.Discrete(2)),
        }
    )
    with pytest.raises(ValueError, match="key='a/b'.*Rename"):
        leaves(space, "observation")


def test_to_model_casts_and_counts_from_zero():
    value = {
        "reward": np.array([0.5, 0.25], "float32"),
        "arm": {
            "angles": np.array([[1.0, 2.0], [3.0, 4.0]]),
            "gear": np.array([5, 7]),
        },
        "pair": (np.eye(2, 4, dtype="int8"), np.array([[2, 1], [0, 0]])),
        "is_first": np.array([[True, False], [False, False]]),
    }
    flat = to_model(NESTED, value, "observation")
    assert list(flat) == list(leaves(NESTED, "observation"))
    for key, leaf in leaves(NESTED, "observation").items():
        assert flat[key].shape == (2, *leaf.shape)
        assert flat[key].dtype == leaf.dtype
    np.testing.assert_array_equal(flat["arm/gear"], [0, 2])
    np.testing.assert_array_equal(flat["arm/angles"], [[1, 2], [3, 4]])
    np.testing.assert_array_equal(flat["is_first"], [[1, 0], [0, 0]])


def test_to_model_keeps_the_marks_of_an_unavailable_key():
    space = spaces.Dict(
        speed=spaces.Box(-9, 9, (2,), np.float64),
        mode=spaces.Discrete(3, start=5),
    )
    value = {"speed": [-np.inf, -np.inf], "mode": 4}
    flat = to_model(space, value, "observation", lead=0)
    assert np.isneginf(flat["speed"]).all()
    assert flat["mode"] == -1


@pytest.mark.parametrize("lead", [0, 1, 2])
def test_to_model_takes_any_number_of_batch_axes(lead):
    space = spaces.Box(-1, 1, (3,))
    value = np.zeros((4, 5)[:lead] + (3,))
    flat = to_model(space, value, "observation", lead)
    assert flat["observation"].shape == value.shape


def test_to_model_names_a_wrong_shape():
    space = spaces.Dict(position=spaces.Box(-1, 1, (3,)))
    with pytest.raises(ValueError, match=r"'position'.*\(3,\).*shape=\(3,\)"):
        to_model(space, {"position": np.zeros(3)}, "observation")


def test_to_model_names_a_missing_key():
    space = spaces.Dict(arm=NESTED["arm"])
    with pytest.raises(ValueError, match=r"'arm/angles'.*\['gear'\]"):
        to_model(space, {"arm": {"gear": [5]}}, "observation")


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-2, 2, (2, 3)),
        spaces.Box(0, 800, (4,)),
        spaces.Box(np.array([0.1, -1e30]), np.array([0.7, 1e30]), None, float),
        spaces.Box(np.float32(-0.3), np.float32(1.1), ()),
        spaces.Box(-1.7e308, 1.7e308, (1,), np.float64),
        spaces.Box(-128, 127, (2,), np.int8),
        spaces.Box(0, 255, (2,), np.uint8),
        spaces.Box(-(2**63), 2**63 - 2, (2,), np.int64),
        spaces.Box(0, 1, (2,), np.float16),
        spaces.Box(3, 3, (2,), np.float64),
    ],
    ids=str,
)
def test_bounds_are_reached_exactly(space):
    samples = np.ones((2, *space.shape), "float32")
    for scale in 1.0, 1.5:
        high = from_model(space, {"action": samples * scale}, "action")
        low = from_model(space, {"action": samples * -scale}, "action")
        assert high.dtype == low.dtype == space.dtype
        np.testing.assert_array_equal(high, [space.high] * 2)
        np.testing.assert_array_equal(low, [space.low] * 2)


def test_scale_is_linear():
    # 0 + (0.5 + 1) / 2 * 800 = 600 and -2 + (0.5 + 1) / 2 * 4 = 1
    space = spaces.Box(np.array([0, -2.0]), np.array([800, 2.0]), None, float)
    action = from_model(space, {"action": np.full((1, 2), 0.5)}, "action")
    np.testing.assert_allclose(action, [[600, 1]], rtol=1e-12)


def test_integer_box_is_rounded():
    # 0 + (x + 1) / 2 * 10: 0.1 -> 5.5 -> 6 (to even), 0.19 -> 5.95, -0.2 -> 4
    space = spaces.Box(0, 10, (3,), np.int16)
    action = from_model(space, {"action": [[0.1, 0.19, -0.2]]}, "action")
    np.testing.assert_array_equal(action, [[6, 6, 4]])


def test_unbounded_dimension_gets_the_clipped_sample():
    space = spaces.Box(
        np.array([-np.inf, 0.5, -np.inf], "float32"),
        np.array([np.inf, np.inf, -0.5], "float32"),
    )
    values = np.array([[-3, -3, -3], [0.7, 0.7, 0.7]], "float32")
    action = from_model(space, {"action": values}, "action")
    expected = np.array([[-1, 0.5, -1], [0.7, 0.7, -0.5]], "float32")
    np.testing.assert_array_equal(action, expected)


def test_actions_of_mixed_kinds():
    space = spaces.Dict(
        move=spaces.Box(-2, 2, (2,)),
        fire=spaces.Discrete(4, start=5),
        keys=spaces.Tuple(
            [spaces.MultiBinary(3), spaces.MultiDiscrete([2], dtype=np.int16)]
        ),
        flag=spaces.Box(0, 1, (), dtype=np.bool_),
        only=spaces.Discrete(1),
    )
    values = {
        "move": np.zeros((2, 2), "float32"),
        "fire": np.array([0, 3], "int32"),
        "keys/0": np.ones((2, 3), "int32"),
        "keys/1": np.ones((2, 1), "int32"),
        "flag": np.array([0, 1], "int32"),
        "only": np.zeros(2, "int32"),
    }
    action = from_model(space, values, "action")
    assert action["fire"].tolist() == [5, 8]
    assert action["fire"].dtype == "int64"
    assert action["only"].dtype == "int64"
    assert [entry.dtype for entry in action["keys"]] == ["int8", "int16"]
    assert action["flag"].tolist() == [False, True]
    assert batch_space(space, 2).contains(action)


@st.composite
def action_spaces(draw):
    kind = draw(st.sampled_from(["box", "integers", "discrete", "multi"]))
    start = draw(st.integers(-4, 4))
    if kind == "box":
        dtype = draw(st.sampled_from([np.float32, np.float64]))
        return spaces.Box(start, start + draw(st.integers(0, 9)), (2,), dtype)
    if kind == "integers":
        return spaces.Box(start, start + draw(st.integers(0, 9)), (2,), "int8")
    if kind == "discrete":
        return spaces.Discrete(draw(st.integers(1, 5)), start=start)
    return spaces.MultiDiscrete(draw(st.lists(st.integers(1, 5), min_size=1)))


@hypothesis.settings(max_examples=60, derandomize=True, deadline=None)
@hypothesis.given(action_spaces(), st.integers(0, 99))
def test_actions_lie_in_the_space_and_classes_round_trip(space, seed):
    nest = spaces.Dict(a=space, b=spaces.Tuple([space]))
    rng = np.random.default_rng(seed)
    values = {}
    for key, leaf in leaves(nest, "action").items():
        shape = (3, *leaf.shape)
        if leaf.discrete:
            sizes = np.reshape(leaf.sizes, leaf.shape)
            values[key] = rng.integers(0, sizes, shape).astype("int32")
        else:
            values[key] = 2 * rng.standard_normal(shape).astype("float32")
    action = from_model(nest, values, "action")
    assert batch_space(nest, 3).contains(action)
    back = to_model(nest, action, "action")
    for key, leaf in leaves(nest, "action").items():
        if leaf.discrete:
            np.testing.assert_array_equal(back[key], values[key])


def leaf_values(space, value, key):
    """Yields the key, space and value of each leaf, by plain recursion."""
    if isinstance(space, spaces.Dict):
        for name in space.spaces:
            path = f"{key}/{name}" if key else name
            yield from leaf_values(space[name], value[name], path)
    elif isinstance(space, spaces.Tuple):
        for index, entry in enumerate(space.spaces):
            yield from leaf_values(entry, value[index], f"{key}/{index}")
    else:
        yield key, space, value


def is_picture(space):
    return space.dtype == np.uint8 and len(space.shape) == 3


@hypothesis.settings(max_examples=80, derandomize=True, deadline=None)
@hypothesis.given(nested_spaces(), st.integers(0, 99))
def test_any_space_round_trip(space, seed):
    root = "" if isinstance(space, spaces.Dict) else "observation"
    own = [leaf for _, leaf, _ in leaf_values(space, space, root)]
    hypothesis.assume(not any(map(is_picture, own)))
    batched = batch_space(space, 3)
    batched.seed(seed)
    sample = batched.sample()
    values = to_model(space, sample, "observation")
    found = leaves(space, "observation")
    assert list(values) == list(found) == sorted(found)
    rng = np.random.default_rng(seed)
    policy = {}
    for key, leaf, entry in leaf_values(space, sample, root):
        value = values[key]
        assert value.dtype == found[key].dtype
        assert value.shape == (3, *leaf.shape) == (3, *found[key].shape)
        if found[key].discrete:
            # Counted from 0, and nothing is lost.
            start = np.asarray(getattr(leaf, "start", 0))
            np.testing.assert_array_equal(value + start, entry)
            sizes = np.reshape(found[key].sizes, leaf.shape)
            assert (0 <= value).all() and (value < sizes).all()
            policy[key] = value
        else:
            # Only cast: bytes are not divided by 255.
            np.testing.assert_array_equal(value, entry.astype("float32"))
            policy[key] = rng.choice([-1.0, 0.3, 1.0], value.shape)
    action = from_model(space, policy, "observation")
    assert batched.contains(action)
    for key, leaf, entry in leaf_values(space, action, root):
        if found[key].discrete:
            start = np.asarray(getattr(leaf, "start", 0))
            np.testing.assert_array_equal(policy[key] + start, entry)
            continue
        bounded = leaf.bounded_below & leaf.bounded_above
        for end, bound in (-1.0, leaf.low), (1.0, leaf.high):
            reached = (policy[key] == end) & bounded
            np.testing.assert_array_equal(
                entry[reached], np.broadcast_to(bound, entry.shape)[reached]
            )


def test_config_functions_are_at_hand():
    assert from_config(to_config(NESTED)) == NESTED


def test_converter_of_a_loop():
    space = spaces.Dict(
        move=spaces.Box(0, 800, (1,)),
        arm=spaces.Tuple([spaces.Discrete(3, start=-1), spaces.Box(0, 9)]),
    )
    converter = Converter(space, "action")
    values = {
        "move": np.float32([[0.5], [7.0]]),
        "arm/0": np.int32([0, 2]),
        "arm/1": np.float32([[-1.0], [1.0]]),
    }
    for _ in range(2):
        action = converter.from_model(values)
        assert action["move"].tolist() == [[600], [800]]
        assert action["arm"][0].tolist() == [-1, 1]
        assert action["arm"][1].tolist() == [[0], [9]]
        back = converter.to_model(action)
        assert list(back) == ["arm/0", "arm/1", "move"]
        assert back["arm/0"].tolist() == [0, 2]
        assert back["move"].tolist() == [[600], [800]]
    single = {"move": [1], "arm": (2, [3])}
    assert converter.to_model(single, lead=0)["arm/0"].tolist() == 3
    with pytest.raises(ValueError, match=r"'arm/1' needs 1 batch axes.*\(1,\)"):
        converter.to_model({"move": [[1]], "arm": ([2], 3)})
