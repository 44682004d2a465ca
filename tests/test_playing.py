import keras
import numpy as np
import pytest
from faulty import faulty
from gymnasium.vector import AutoresetMode
from gymnasium.vector import SyncVectorEnv
from scripted import LENGTHS
from scripted import Puppet
from scripted import Scripted
from scripted import expected_rows
from scripted import lengths_of
from scripted import make_scripted
from scripted import scripted_envs

import keras_dreamer as kd
from keras_dreamer.playing import check_episodes
from keras_dreamer.playing import play


def rng():
    return np.random.default_rng(0)


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
    scores = play(Puppet(envs), envs, 3, False, rng())
    assert scores.returns.tolist() == [0.125, 2.375, 11.875]
    assert scores.lengths.tolist() == [1, 2, 5]


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda m: m.name)
def test_every_environment_plays_the_same_number(mode):
    envs = SyncVectorEnv(
        [lambda number=number: Scripted(number) for number in range(3)],
        autoreset_mode=mode,
    )
    # 7 episodes of 3 environments: 3 of each.
    scores = play(Puppet(envs), envs, 7, False, rng())
    expected = [returns_of(number, 3) for number in range(3)]
    np.testing.assert_array_equal(scores.returns, np.concatenate(expected))
    expected = [lengths_of(number, LENGTHS)[:3] for number in range(3)]
    np.testing.assert_array_equal(scores.lengths, np.concatenate(expected))


def test_actions_are_the_policys():
    # The policy says (steps + 1) / 4, in the bounds [-2, 2] the double.
    envs = make_scripted(2, lengths=(3,))
    play(Puppet(envs), envs, 4, False, rng())
    for env in scripted_envs(envs):
        assert [float(a[0]) for a in env.received] == [0.5, 1.0, 1.5] * 2


@pytest.mark.parametrize("deterministic", [False, True])
def test_the_noise_of_training_stays_as_it_is(deterministic):
    envs = make_scripted(1)
    model = Puppet(envs)
    play(model, envs, 2, deterministic, rng())
    assert model.action_noise.drawn == 0


def test_may_be_stopped():
    envs, seen = make_scripted(1), []

    def watch(rows):
        seen.append(rows)
        return len(seen) == 4

    # The reset and the end of the first episode, the same of the second one.
    scores = play(Puppet(envs), envs, 3, False, rng(), watch)
    assert scores.returns.tolist() == [0.125]
    assert [bool(rows.is_first[0]) for rows in seen] == [1, 0, 1, 0]


def test_no_episodes_are_refused():
    check_episodes(1)
    with pytest.raises(ValueError, match="at least 1.*episodes=0.*Choose"):
        check_episodes(0)


@pytest.mark.filterwarnings("ignore:Environment . is replaced")
def test_episodes_that_broke_off_do_not_count():
    envs = kd.envs.make(faulty("raise"), 2, on_env_error="restart")
    model = Puppet(envs)
    policy, breaks = model.policy, [4, 7]

    def breaking(observation, *args):
        state = policy(observation, *args)
        broken = observation["observation"][0, 0] in breaks[:1]
        action = keras.ops.convert_to_tensor([int(broken), 0], "int32")
        state["action"]["action"] = action
        del breaks[:broken]
        return state

    model.policy = breaking
    scores = kd.evaluate(model, envs, episodes=4)
    assert scores.returns.tolist() == [9.0] * 4
    assert scores.lengths.tolist() == [9] * 4
    assert not breaks
