import agents
import gymnasium
import numpy as np
import pytest
from agents import spaces
from gymnasium.vector.utils import batch_space

from keras_dreamer.models.acting import initial_state
from keras_dreamer.models.acting import keep_inactive

pytestmark = pytest.mark.usefixtures("quick_backend")

# Every kind of action, in one space: each has a shape of its own to compile.
ACTIONS = spaces.Dict(
    single=spaces.Discrete(1),
    started=spaces.Discrete(3, start=5),
    multi=spaces.MultiDiscrete([3, 2, 5]),
    binary=spaces.MultiBinary(4),
    wide=spaces.Box(-2, 2, (2,)),
    pwm=spaces.Box(0, 800, (1,)),
    free=agents.numbers(2),
    matrix=agents.bounded(2, 3),
    double=spaces.Box(-3, 1, (2,), np.float64),
    nested=spaces.Tuple(
        [spaces.Dict(inner=spaces.Discrete(2)), agents.bounded()]
    ),
)
# Every kind of observation, also under names that a batch has.
OBSERVATIONS = spaces.Dict(
    double=spaces.Box(-np.inf, np.inf, (2,), np.float64),
    short=spaces.Box(-100, 100, (3,), np.int16),
    scalar=agents.numbers(),
    bits=spaces.MultiBinary(3),
    flag=spaces.Box(0, 1, (2,), bool),
    mode=spaces.Discrete(4, start=-1),
    multi=spaces.MultiDiscrete([[2, 3], [4, 5]]),
    deep=agents.numbers(4, 5, 6),
    square=agents.numbers(8, 8),
    reward=agents.numbers(1),
    action=spaces.Discrete(2),
    is_first=agents.numbers(),
    arm=spaces.Dict(angles=agents.numbers(2), hand=spaces.Discrete(3)),
    pair=spaces.Tuple([agents.numbers(2), spaces.Discrete(2)]),
)


def sample(space, count, seed=0):
    """Draws the observations of `count` environments."""
    batched = batch_space(space, count)
    batched.seed(seed)
    return batched.sample()


@pytest.fixture(scope="module")
def model():
    return agents.make_random_agent()


@pytest.fixture(scope="module")
def observation(model):
    return sample(model.observation_space, 2)


def assert_equal(actual, expected):
    for path in ("deter", "stoch"):
        np.testing.assert_array_equal(actual[path], expected[path])
    for key, value in expected["action"].items():
        np.testing.assert_array_equal(actual["action"][key], value)


def test_numpy_in_and_numpy_out(model, observation):
    action, state = model.act(observation)
    assert batch_space(model.action_space, 2).contains(action)
    assert {k: (v.shape, v.dtype.name) for k, v in action.items()} == {
        "fire": ((2,), "int64"),
        "gear": ((2, 2), "int64"),
        "move": ((2, 2), "float32"),
    }
    assert set(state) == {"deter", "stoch", "action"}
    assert state["deter"].shape == (2, 64)
    assert state["stoch"].shape == (2, 4)
    assert state["stoch"].dtype == np.int32
    for value in (*action.values(), *state["action"].values()):
        assert type(value) is np.ndarray


def test_deterministic_twice_is_equal(model, observation):
    _, state = model.act(observation)
    first = model.act(observation, state, deterministic=True)
    second = model.act(observation, state, deterministic=True)
    assert_equal(first[1], second[1])
    for key, value in first[0].items():
        np.testing.assert_array_equal(second[0][key], value)


def test_sampling_draws_new_noise_each_time_in_a_fixed_order(observation):
    model, same = agents.make_agent(), agents.make_agent()
    first = [model.act(observation)[1] for _ in range(3)]
    second = [same.act(observation)[1] for _ in range(3)]
    for one, other in zip(first, second, strict=True):
        assert_equal(one, other)
    moves = [state["action"]["move"] for state in first]
    assert (moves[0] != moves[1]).all() and (moves[1] != moves[2]).all()
    assert model.action_noise.drawn == 3
    # Taking the modes does not disturb the order.
    model.act(observation, deterministic=True)
    assert model.action_noise.drawn == 3


def test_deterministic_action_is_the_mode(model, observation):
    # With noise 0 a normal gives its mean, which lies within the bounds.
    _, state = model.act(observation, deterministic=True)
    assert (np.abs(state["action"]["move"]) < 1).all()


def test_an_episode_starts_from_zeros_whatever_came_before(model, observation):
    _, fresh = model.act(observation, deterministic=True)
    _, before = model.act(sample(model.observation_space, 2, seed=1))
    _, going_on = model.act(observation, before, deterministic=True)
    _, restarted = model.act(
        observation, before, np.array([True, False]), deterministic=True
    )
    np.testing.assert_allclose(
        restarted["deter"], [fresh["deter"][0], going_on["deter"][1]], atol=1e-6
    )
    assert (np.abs(fresh["deter"] - going_on["deter"]).max(-1) > 0.01).all()


def test_environments_do_not_influence_each_other(model, observation):
    _, pair = model.act(observation, deterministic=True)
    _, swapped = model.act(
        {key: value[::-1] for key, value in observation.items()},
        deterministic=True,
    )
    np.testing.assert_allclose(swapped["deter"][::-1], pair["deter"], atol=1e-6)
    np.testing.assert_array_equal(swapped["stoch"][::-1], pair["stoch"])


def test_acting_filters_as_training_does(model):
    """Walks through a batch with `act`; the latents are the loss's."""
    batch = agents.random_batch(model)
    latents = agents.evaluate(model, batch).latents
    state = {
        **batch["context"],
        "action": {k: v[:, 0] for k, v in batch["action"].items()},
    }
    for step in range(6):
        row = step + 1  # After the context row.
        _, state = model.act(
            {k: v[:, row] for k, v in batch["observation"].items()},
            state,
            batch["is_first"][:, row],
            deterministic=True,
        )
        np.testing.assert_allclose(
            state["deter"], latents["deter"][:, step], atol=2e-6
        )
        np.testing.assert_array_equal(state["stoch"], latents["stoch"][:, step])
        state["action"] = {k: v[:, row] for k, v in batch["action"].items()}


def test_the_state_may_be_written_to(model, observation):
    _, state = model.act(observation)
    for value in [state["deter"], state["stoch"], *state["action"].values()]:
        value[0] = 0
    model.act(observation, state)


# What two environments get at the third step, with modes and with samples:
# actions, latents and the sum of `deter`.
EVERYWHERE = {
    True: {
        "move": [[-0.139108, -0.531538], [-0.146062, -0.530005]],
        "fire": [0, 0],
        "gear": [[1, 1], [1, 0]],
        "stoch": [[0, 1, 1, 1], [0, 1, 1, 1]],
        "deter": [-0.210675, 0.238199],
    },
    False: {
        "move": [[0.271540, -0.409701], [0.798087, -1.0]],
        "fire": [0, 0],
        "gear": [[2, 0], [2, 0]],
        "stoch": [[0, 3, 1, 2], [2, 0, 1, 2]],
        "deter": [-0.804325, 0.429715],
    },
}


@pytest.mark.parametrize("deterministic", EVERYWHERE)
def test_acting_is_the_same_on_every_backend(model, deterministic):
    batch = agents.random_batch(model)
    model.action_noise.drawn = 5  # Its noise is numbered.
    state = None
    for step in range(3):
        observation = {k: v[:2, step] for k, v in batch["observation"].items()}
        action, state = model.act(
            observation, state, deterministic=deterministic
        )
    deter = state["deter"].sum(-1)
    found = {**action, "stoch": state["stoch"], "deter": deter}
    for name, value in EVERYWHERE[deterministic].items():
        np.testing.assert_allclose(found[name], value, atol=2e-6)


def test_observations_of_a_wrong_shape_are_refused(model, observation):
    wrong = {**observation, "position": np.zeros((2, 4), "float32")}
    with pytest.raises(ValueError, match=r"'position' needs.*\(3,\).*\(2, 4\)"):
        model.act(wrong)


def test_a_key_that_is_missing_in_a_sample_counts_as_nothing(
    model, observation
):
    marked = {key: value.copy() for key, value in observation.items()}
    marked["position"][0] = -np.inf
    marked["mode"][0] = -1
    _, state = model.act(marked, deterministic=True)
    _, whole = model.act(observation, deterministic=True)
    assert np.isfinite(state["deter"]).all()
    np.testing.assert_allclose(state["deter"][1], whole["deter"][1], atol=1e-6)


def test_state_under_bfloat16(observation):
    model = agents.make_agent(dtype="mixed_bfloat16")
    # The same from the start: another dtype would compile another program.
    assert initial_state(model, 2)["deter"].dtype.name == "bfloat16"
    action, state = model.act(observation)
    _, state = model.act(observation, state)
    assert state["deter"].dtype.name == "bfloat16"
    assert action["move"].dtype == np.float32
    assert np.isfinite(state["deter"].astype("float32")).all()


@pytest.fixture(scope="module")
def every_space():
    return agents.make_agent(OBSERVATIONS, ACTIONS)


def test_all_spaces_train(every_space):
    model = agents.quick_compile(every_space)
    logs = agents.train(model, agents.random_batch(model), updates=1)
    assert all(np.isfinite(values).all() for values in logs.values())
    for key in "arm/angles arm/hand pair/0 pair/1 reward is_first".split():
        assert f"loss/rec/{key}" in logs


def test_all_spaces_act(every_space):
    action, _ = every_space.act(sample(OBSERVATIONS, 64))
    assert batch_space(ACTIONS, 64).contains(action)
    assert list(action) == list(ACTIONS.spaces)
    assert action["double"].dtype == np.float64
    assert action["binary"].dtype == np.int8
    assert set(action["started"]) == {5, 6, 7}
    assert set(action["single"]) == {0}
    assert {row[2] for row in action["multi"].tolist()} == {0, 1, 2, 3, 4}
    # A third of the samples lie outside of [-1, 1]: bounds are reached.
    assert (action["wide"].min(), action["wide"].max()) == (-2, 2)
    assert (action["pwm"].min(), action["pwm"].max()) == (0, 800)
    assert (action["double"].min(), action["double"].max()) == (-3, 1)
    # Without bounds the value in [-1, 1] is sent as it is.
    assert (action["free"].min(), action["free"].max()) == (-1, 1)
    assert action["nested"][0]["inner"].shape == (64,)
    assert action["nested"][1].shape == (64,)


@pytest.mark.parametrize(
    "observation,action",
    [
        (agents.numbers(4, 5, 6), spaces.Discrete(3, start=5)),
        (spaces.Discrete(7), spaces.MultiDiscrete([3, 2, 5])),
        (
            spaces.Tuple([agents.numbers(1), spaces.Discrete(2)]),
            ACTIONS["free"],
        ),
    ],
)
def test_spaces_that_are_no_dicts(observation, action):
    model = agents.make_agent(observation, action)
    chosen, _ = model.act(sample(observation, 3))
    assert batch_space(action, 3).contains(chosen)


def test_pictures_are_refused_by_name():
    space = gymnasium.spaces.Dict(
        camera=spaces.Box(0, 255, (5, 5, 5), np.uint8)
    )
    with pytest.raises(ValueError, match="'camera' looks like a picture"):
        agents.make_agent(space)


def test_keep_inactive():
    old = {"deter": np.zeros((3, 2)), "action": {"a": np.array([1, 2, 3])}}
    new = {"deter": np.ones((3, 2)), "action": {"a": np.array([7, 8, 9])}}
    kept = keep_inactive(old, new, np.array([True, False, True]))
    assert kept["deter"].tolist() == [[1, 1], [0, 0], [1, 1]]
    assert kept["action"]["a"].tolist() == [7, 2, 9]
    assert keep_inactive(None, new, np.array([False] * 3)) is new
