import agents
import gymnasium
import numpy as np
import pytest
from scripted import Puppet
from scripted import Scripted
from scripted import make_scripted

import keras_dreamer as kd


@pytest.fixture(scope="module", autouse=True)
def quick_backend():
    with agents.quick_backend():
        yield


class Puppeteer(kd.Policy):
    """A policy whose model is a puppet."""


def test_scores_of_a_model_and_of_its_policy_are_the_same():
    envs = make_scripted(2)
    scores = kd.evaluate(Puppet(envs), envs, episodes=3)
    others = make_scripted(2)
    policy = Puppeteer(Puppet(others))
    again = kd.evaluate(policy, others, episodes=3)
    assert scores.returns.tolist() == again.returns.tolist()
    assert len(scores.returns) == len(scores.lengths) == 4


def test_a_single_environment_stays_open():
    env = Scripted(0)
    env.close = lambda: pytest.fail("It belongs to the user.")
    vector = make_scripted(1)
    scores = kd.evaluate(Puppet(vector), env, episodes=3)
    assert scores.lengths.tolist() == [1, 2, 5]


def test_what_is_no_environment_is_refused():
    envs = make_scripted(1)
    with pytest.raises(ValueError, match="must be an env.*'CartPole'.*make"):
        kd.evaluate(Puppet(envs), "CartPole")
    with pytest.raises(ValueError, match="at least 1.*episodes=0.*Choose"):
        kd.evaluate(Puppet(envs), envs, episodes=0)


# With a real agent.


@pytest.fixture(scope="module")
def model():
    env = gymnasium.make("Pendulum-v1")
    return agents.make_agent(
        env.observation_space, env.action_space, **agents.SHALLOW
    )


def pendulums():
    return kd.envs.make(
        lambda: gymnasium.make("Pendulum-v1", max_episode_steps=20),
        num_envs=2,
        seed=5,
    )


def loop(model, envs, deterministic):
    """A loop as users write it; returns the first return of each."""
    observation, _ = envs.reset()
    state, total = None, np.zeros(envs.num_envs)
    for _ in range(20):
        action, state = model.act(
            observation, state, deterministic=deterministic
        )
        observation, reward, *_ = envs.step(action)
        total += reward
    return total


def test_equal_to_a_loop_with_act(model):
    scores = kd.evaluate(model, pendulums(), 2, deterministic=True)
    expected = loop(model, pendulums(), deterministic=True)
    np.testing.assert_allclose(scores.returns, expected, rtol=1e-6)


def test_sampling_depends_on_the_seed_alone(model):
    def returns(seed):
        scores = kd.evaluate(model, pendulums(), 2, seed=seed)
        return scores.returns.tolist()

    drawn = model.action_noise.drawn
    first = returns(0)
    loop(model, pendulums(), deterministic=False)
    assert returns(0) == first != returns(1)
    assert model.action_noise.drawn == drawn + 20


# Videos.


class Painted(Scripted):
    """A scripted environment that renders its number of steps."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}
    render_mode = "rgb_array"

    def render(self):
        return np.full((32, 48, 3), 20 * self.count, "uint8")


def test_records_the_first_episode(tmp_path):
    imageio = pytest.importorskip("imageio.v3")
    envs = make_scripted(2, env=Painted, lengths=(3, 9))
    path = tmp_path / "video.gif"
    scores = kd.evaluate(Puppet(envs), envs, 2, record=path)
    assert scores.lengths.tolist() == [3, 9]
    frames = imageio.imread(path)
    assert frames[:, 0, 0, 0].tolist() == [0, 20, 40, 60]


def test_without_a_renderer_the_scores_come_all_the_same(tmp_path):
    envs = make_scripted(1)
    with pytest.warns(UserWarning, match="no complete video.*render_mode="):
        scores = kd.evaluate(
            Puppet(envs), envs, 3, record=tmp_path / "video.mp4"
        )
    assert scores.lengths.tolist() == [1, 2, 5]
    assert not list(tmp_path.iterdir())
