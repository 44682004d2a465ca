import numpy as np
import pytest
from faulty import faulty
from gymnasium.vector import AutoresetMode
from gymnasium.vector import SyncVectorEnv
from scripted import Puppet
from scripted import Scripted
from scripted import expected_rows
from scripted import make_scripted
from scripted import scripted_envs

import keras_dreamer as kd


def returns_of(number, episodes):
    """Returns the sums of rewards of the first scripted episodes."""
    rows = expected_rows(number, 100)
    ends = np.flatnonzero([row["is_last"] for row in rows])[:episodes]
    total = np.cumsum([row["reward"] for row in rows])[ends]
    return np.diff(total, prepend=0)


def test_returns_are_those_of_whole_episodes():
    # Environment 0 plays 1, 2 and 5 steps: 1/8, then 1 + 1/8 + 1 + 2/8, then
    # 5 * 2 + (1 + 2 + 3 + 4 + 5) / 8.
    envs = make_scripted(1)
    returns = kd.evaluate(Puppet(envs), envs, episodes=3)
    assert returns.tolist() == [0.125, 2.375, 11.875]


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda m: m.name)
def test_every_environment_plays_the_same_number(mode):
    envs = SyncVectorEnv(
        [lambda number=number: Scripted(number) for number in range(3)],
        autoreset_mode=mode,
    )
    # 7 episodes of 3 environments: 3 of each.
    returns = kd.evaluate(Puppet(envs), envs, episodes=7)
    expected = [returns_of(number, 3) for number in range(3)]
    np.testing.assert_array_equal(returns, np.concatenate(expected))


@pytest.mark.filterwarnings("ignore:Environment . is replaced")
def test_episodes_that_broke_off_do_not_count():
    envs = kd.envs.make(faulty("raise"), 2, on_env_error="restart")
    model = Puppet(envs)
    policy, breaks = model.policy, [4, 7]

    def breaking(observation, *args):
        state = policy(observation, *args)
        broken = observation["observation"][0, 0] in breaks[:1]
        state["action"]["action"] = np.array([broken, 0], "int32")
        del breaks[:broken]
        return state

    model.policy = breaking
    assert kd.evaluate(model, envs, episodes=4).tolist() == [9.0] * 4
    assert not breaks


def test_actions_are_the_policys():
    # The policy says (steps + 1) / 4, in the bounds [-2, 2] the double.
    envs = make_scripted(2, lengths=(3,))
    kd.evaluate(Puppet(envs), envs, episodes=4)
    for env in scripted_envs(envs):
        assert [float(a[0]) for a in env.received] == [0.5, 1.0, 1.5] * 2


@pytest.mark.parametrize("deterministic", [False, True])
def test_the_noise_of_training_stays_as_it_is(deterministic):
    envs = make_scripted(1)
    model = Puppet(envs)
    kd.evaluate(model, envs, episodes=2, deterministic=deterministic)
    assert model.actions_drawn == 0


def test_no_episodes_are_refused():
    envs = make_scripted(1)
    with pytest.raises(ValueError, match="at least 1.*episodes=0.*Choose"):
        kd.evaluate(Puppet(envs), envs, episodes=0)
