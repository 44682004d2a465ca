import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from keras_dreamer.envs.make import make


class Walk(gymnasium.Env):
    """Twenty lines that anybody could write."""

    observation_space = spaces.Box(-10, 10, (1,), np.float32)
    action_space = spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, limit=10.0):
        self.limit = limit

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.position = self.np_random.uniform(-1, 1)
        return self._observe(), {}

    def step(self, action):
        self.position += float(action[0])
        done = abs(self.position) > self.limit
        return self._observe(), -abs(self.position), done, False, {}

    def _observe(self):
        return np.array([self.position], np.float32)


@pytest.fixture(autouse=True, scope="module")
def registered():
    gymnasium.register("KerasDreamerWalk-v0", Walk, max_episode_steps=50)
    yield
    del gymnasium.registry["KerasDreamerWalk-v0"]


@pytest.mark.parametrize(
    "env",
    [Walk, lambda limit=10.0: Walk(limit), "gym:KerasDreamerWalk-v0"],
    ids=["class", "factory", "id"],
)
@pytest.mark.parametrize("num_envs", [1, 3])
def test_own_environment(env, num_envs):
    envs = make(env, num_envs, action_repeat=2, seed=1, limit=5.0)
    observation, _ = envs.reset()
    assert observation.shape == (num_envs, 1)
    ones = np.ones((num_envs, 1), "float32")
    after, reward, *_, infos = envs.step(ones)
    np.testing.assert_allclose(after, observation + 2, rtol=1e-6)
    expected = -np.abs(observation + 1) - np.abs(after)
    np.testing.assert_allclose(reward, expected[:, 0], rtol=1e-6)
    assert infos["env_steps"].tolist() == [2] * num_envs
    assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert envs.unwrapped.envs[0].unwrapped.limit == 5.0


def test_all_ways_give_the_same_resets():
    starts = [
        make(env, 4, seed=9).reset()[0]
        for env in (Walk, lambda: Walk(), "gym:KerasDreamerWalk-v0")
    ]
    np.testing.assert_array_equal(starts[0], starts[1])
    np.testing.assert_array_equal(starts[0], starts[2])
    assert len(np.unique(starts[0])) == 4


def test_shapes_are_checked_with_the_environment_named():
    class Broken(Walk):
        def _observe(self):
            size = 1 if abs(self.position) < 3 else 2
            return np.full(size, self.position, np.float32)

    envs = make(Broken, 2)
    envs.reset()
    still_then_moving = np.array([[0.0], [0.5]], "float32")
    with pytest.raises(ValueError, match="'observation'.*environment 1 at st"):
        for _ in range(20):
            envs.step(still_then_moving)


@pytest.mark.parametrize("env", ["CartPole-v1", "atari:Pong", "gym:", 3])
def test_unknown_forms_are_refused(env):
    with pytest.raises(ValueError, match=f"'gym:<id>'.*env={env!r}"):
        make(env)


def test_function_must_return_an_environment():
    with pytest.raises(ValueError, match="Received: int.*derive from one"):
        make(lambda: 3)


@pytest.mark.parametrize("num_envs", [0, 1.5])
def test_number_of_environments_is_checked(num_envs):
    with pytest.raises(ValueError, match=f"num_envs={num_envs}"):
        make(Walk, num_envs)


def test_mode_is_checked():
    with pytest.raises(ValueError, match="mode='thread'.*'sync'"):
        make(Walk, mode="thread")


def test_what_happens_on_errors_is_checked():
    with pytest.raises(ValueError, match="on_env_error='ignore'.*'raise'"):
        make(Walk, on_env_error="ignore")


def test_processes_equal_the_synchronous_vector():
    runs = []
    for mode in "sync", "process":
        envs = make("gym:CartPole-v1", 2, 2, seed=4, mode=mode, timeout=60.0)
        rows = [envs.reset()[0]]
        rows += [envs.step(np.array([0, 1]))[:4] for _ in range(9)]
        runs.append(rows)
        envs.close()
        assert envs.closed
    for sync, process in zip(*runs, strict=True):
        np.testing.assert_equal(process, sync)
