import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from keras_dreamer.envs.action_repeat import ActionRepeat


class Counter(gymnasium.Env):
    """Rewards 1, 2, 4, 8, …; ends after five steps."""

    observation_space = spaces.Box(0, 9, ())
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.count = 0
        return np.float32(0), {}

    def step(self, action):
        self.count += 1
        reward = 2.0 ** (self.count - 1)
        last = self.count == 5
        info = {"count": self.count}
        return np.float32(self.count), reward, False, last, info


@pytest.mark.parametrize(
    "repeat, rewards, counts",
    [
        (1, [1, 2, 4, 8, 16], [1, 1, 1, 1, 1]),
        (2, [1 + 2, 4 + 8, 16], [2, 2, 1]),  # Stops on the odd step.
        (4, [1 + 2 + 4 + 8, 16], [4, 1]),
        (9, [31], [5]),
    ],
)
def test_sums_rewards_and_stops_at_the_end(repeat, rewards, counts):
    env = ActionRepeat(Counter(), repeat)
    env.reset()
    steps = [env.step(0)]
    while not steps[-1][3]:
        steps.append(env.step(0))
    assert [step[1] for step in steps] == rewards
    assert [step[4]["env_steps"] for step in steps] == counts
    # The observation and info are those of the last inner step.
    assert [step[0] for step in steps] == list(np.cumsum(counts))
    assert [step[4]["count"] for step in steps] == list(np.cumsum(counts))


@pytest.mark.parametrize("repeat", [0, -1, 1.5])
def test_repeat_below_one_is_refused(repeat):
    with pytest.raises(ValueError, match=rf"action_repeat={repeat}.*Use 1"):
        ActionRepeat(Counter(), repeat)
