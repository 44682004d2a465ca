import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from keras_dreamer.envs.checked import Checked

GOOD = {"position": np.zeros(3), "pair": (np.zeros((), int), np.zeros(2))}


class Replies(gymnasium.Env):
    """Returns what it is given; resets with a good observation."""

    observation_space = spaces.Dict(
        position=spaces.Box(-9, 9, (3,)),
        pair=spaces.Tuple([spaces.Discrete(4), spaces.MultiBinary(2)]),
    )
    action_space = spaces.Discrete(2)

    def __init__(self, *replies):
        self.replies = iter(replies)

    def reset(self, *, seed=None, options=None):
        return {**GOOD, "pair": (0, [0, 1])}, {}

    def step(self, action):
        return next(self.replies)


def step(observation=None, reward=0.0):
    observation = {**GOOD, "pair": (0, [0, 1]), **(observation or {})}
    return observation, reward, False, False, {}


def run(*replies):
    env = Checked(Replies(*replies), index=2)
    env.reset()
    return [env.step(0) for _ in replies]


def test_casts_to_the_declared_shape_and_dtype():
    reply = step({"position": [1.0, 2.0, 3.0], "extra": "dropped"})
    [(observation, *_)] = run(reply)
    assert observation.keys() == {"position", "pair"}
    assert observation["position"].dtype == "float32"
    assert observation["pair"][0].dtype == "int64"
    assert observation["pair"][0].shape == ()
    assert observation["pair"][1].dtype == "int8"


def test_rewards_and_ends_become_plain_numbers():
    reply = step(reward=np.array([2.0], "float32"))
    [(_, reward, *_)] = run(reply)
    assert reward == 2.0
    assert type(reward) is float


@pytest.mark.parametrize(
    "broken, words",
    [
        ({"position": np.zeros(4)}, r"'position'.*\(3,\).*shape=\(4,\)"),
        ({"position": np.zeros((1, 3))}, r"'position'.*shape=\(1, 3\)"),
        ({"position": ["a", "b", "c"]}, r"'position'.*float32.*dtype=<U1"),
        ({"pair": (0.5, [0, 1])}, r"'pair/0'.*int64.*dtype=float64"),
        ({"pair": (0, [0, 300])}, r"'pair/1'.*int8.*dtype=int64"),
        ({"pair": (0,)}, r"entry 'pair/1'.*a tuple without it"),
    ],
)
def test_broken_observation_is_named_with_its_place(broken, words):
    replies = [step() for _ in range(6)]
    place = "in environment 2 at step 7.*Correct the environment"
    with pytest.raises(ValueError, match=f"{words}.*{place}"):
        run(*replies, step(broken))


def test_single_space_is_called_observation():
    env = gymnasium.make("CartPole-v1")
    env.reset = lambda seed, options: (np.zeros(5, "float32"), {})
    env = Checked(env, index=1)
    with pytest.raises(ValueError, match="'observation'.*environment 1"):
        env.reset()


@pytest.mark.parametrize("reward", [None, [1.0, 2.0], "1"])
def test_reward_must_be_a_number(reward):
    with pytest.raises(ValueError, match="reward=.*environment 2 at step 1"):
        run(step(reward=reward))


def test_old_interfaces_are_refused():
    with pytest.raises(ValueError, match="5 values.*a tuple of 4 values"):
        run(({}, 0.0, False, {}))
    env = Replies()
    env.reset = lambda **_: GOOD
    with pytest.raises(ValueError, match="`reset` must.*Received: a dict"):
        Checked(env).reset()


def test_unsupported_space_is_refused_at_construction():
    env = Replies()
    env.observation_space = spaces.Dict(words=spaces.Text(9))
    with pytest.raises(ValueError, match="observation entry 'words'.*Text"):
        Checked(env)
