import agents
import gymnasium
import numpy as np
import pytest
from helpers import to_numpy

from keras_dreamer.models import noise as noise_module
from keras_dreamer.models.noise import NumberedNoise
from keras_dreamer.models.noise import acting_noise

# B = 3, T = 6, S = 4, H = 5; the actions are those of `agents.make_agent`.
SHAPES = {
    "posterior": (3, 6, 4),
    "prior": (5, 18, 4),
    "fire": (5, 18),
    "gear": (5, 18, 2),
    "move": (5, 18, 2),
}


@pytest.fixture(scope="module")
def model():
    return agents.make_agent()


def flat(noise):
    return {
        **{k: v for k, v in noise.items() if k != "action"},
        **noise["action"],
    }


def test_sampled_noise_has_the_documented_shapes_and_ranges(model):
    noise = {k: to_numpy(v) for k, v in flat(model.sample_noise(3, 6)).items()}
    assert {k: v.shape for k, v in noise.items()} == SHAPES
    assert all(v.dtype == np.float32 for v in noise.values())
    normal = noise.pop("move")
    assert normal.min() < -1 and normal.max() > 1
    for name, uniform in noise.items():
        assert 0 <= uniform.min() and uniform.max() < 1, name
    # 360 uniform numbers: the mean is 1/2 with a deviation of 0.015.
    assert abs(noise["prior"].mean() - 0.5) < 0.08
    assert abs(normal.std() - 1) < 0.25


def test_every_draw_differs_and_no_part_repeats_another(model):
    first, second = (flat(model.sample_noise(3, 6)) for _ in range(2))
    numbers = np.concatenate(
        [to_numpy(v).ravel() for draw in (first, second) for v in draw.values()]
    )
    # float32 has 2**24 uniform numbers: some few of 1800 may coincide.
    assert len(np.unique(numbers)) > len(numbers) - 10


def test_noise_streams_follow_the_seed():
    one, same, other = (agents.make_agent(seed=seed) for seed in (1, 1, 2))
    drawn = [
        to_numpy(m.sample_noise(2, 3)["prior"]) for m in (one, same, other)
    ]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert (drawn[0] != drawn[2]).any()


@pytest.mark.parametrize(
    "action", [agents.bounded(2), gymnasium.spaces.Discrete(3)]
)
def test_one_kind_of_action_alone(action):
    model = agents.make_agent(action=action)
    (noise,) = model.sample_noise(2, 6)["action"].values()
    assert tuple(noise.shape) == (5, 12, *action.shape)


def test_mode_noise_is_a_static_choice(model):
    noise = model.mode_noise(3, 6, normal=0.5)
    move = to_numpy(noise["action"].pop("move"))
    assert noise == {
        "posterior": None,
        "prior": None,
        "action": {"fire": None, "gear": None},
    }
    np.testing.assert_array_equal(move, np.full(SHAPES["move"], 0.5))
    assert (to_numpy(model.mode_noise(3, 6)["action"]["move"]) == 0).all()


@pytest.mark.parametrize("process", [0, 3])
def test_numbered_noise_is_that_of_a_counter(monkeypatch, process):
    monkeypatch.setattr(noise_module, "process_id", lambda: process)
    numbered = NumberedNoise(7)
    key = np.random.Philox(7).state["state"]["key"]
    for number in range(3):
        bits = np.random.Philox(key=key, counter=[0, number, process, 0])
        expected = np.random.Generator(bits).standard_normal(9)
        assert numbered.drawn == number
        # What an action leaves of its numbers does not reach the next one.
        found = numbered.next()
        np.testing.assert_array_equal(found.standard_normal(9), expected)
        found.random(number, "float32")


def test_numbered_noise_goes_on_from_a_number():
    numbered, other = NumberedNoise(0), NumberedNoise(0)
    drawn = [numbered.next().random(4) for _ in range(4)]
    assert len({row[0] for row in drawn}) == 4
    other.drawn = 3
    np.testing.assert_array_equal(other.next().random(4), drawn[3])
    assert (NumberedNoise(1).next().random(4) != drawn[0]).all()


def test_acting_noise(model):
    rng = np.random.default_rng(0)
    posterior, action = acting_noise(
        model.config, model.action_leaves, 7, rng, deterministic=False
    )
    assert posterior.shape == (7, 4)
    assert {k: v.shape for k, v in action.items()} == {
        "fire": (7,),
        "gear": (7, 2),
        "move": (7, 2),
    }
    assert 0 <= posterior.min() and posterior.max() < 1
    assert action["move"].min() < 0


def test_acting_noise_of_modes(model):
    posterior, action = acting_noise(
        model.config, model.action_leaves, 7, None, deterministic=True
    )
    assert posterior is None
    assert action.pop("move").tolist() == [[0, 0]] * 7
    assert action == {"fire": None, "gear": None}
