import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv
from gymnasium.vector import AutoresetMode
from gymnasium.vector import SyncVectorEnv

from keras_dreamer.envs.action_repeat import ActionRepeat
from keras_dreamer.envs.transitions import Transitions

MODES = list(AutoresetMode)


class Scripted(gymnasium.Env):
    """Counts its steps; every episode has the next length of a script.

    Episodes of odd number terminate, the others are truncated. Observations
    and rewards depend on the actions, so that a wrong one is seen.
    """

    observation_space = spaces.Dict(
        place=spaces.Box(-np.inf, np.inf, (3,)),
        pair=spaces.Tuple(
            [spaces.Box(-np.inf, np.inf, ()), spaces.Discrete(99)]
        ),
    )
    action_space = spaces.Discrete(10)

    def __init__(self, lengths):
        self.lengths = lengths
        self.episode = -1

    def reset(self, *, seed=None, options=None):
        self.episode += 1
        self.count, self.action = 0, 0
        return self._observe(), {"env_steps": 0}

    def step(self, action):
        self.count += 1
        self.action = action
        ended = self.count == self.lengths[self.episode % len(self.lengths)]
        odd = bool(self.episode % 2)
        reward = self.count + 10.0 * action
        return self._observe(), reward, ended and odd, ended and not odd, {}

    def _observe(self):
        place = np.array([self.episode, self.count, self.action], "float32")
        return {"place": place, "pair": (np.float32(self.count), self.episode)}


SCRIPTS = [[1, 2, 5], [3], [2, 1, 1]]


def make_vector(mode, kind=SyncVectorEnv, repeat=1, **kwargs):
    def factory(lengths):
        return lambda: ActionRepeat(Scripted(lengths), repeat)

    return kind(
        [factory(each) for each in SCRIPTS], autoreset_mode=mode, **kwargs
    )


def record(envs, calls=12):
    """Returns the rows of each environment, driven as the driver does it.

    The action is a number that depends on the row it is taken at.
    """
    transitions = Transitions(envs)
    stored = [[] for _ in range(envs.num_envs)]
    actions = np.zeros(envs.num_envs, int)
    batches = transitions.reset()
    for _ in range(calls):
        for rows in batches:
            for i in np.flatnonzero(rows.active):
                stored[i].append(read(rows, i))
                actions[i] = (len(stored[i]) * 3) % 10
        batches = transitions.step(actions)
    envs.close()
    return stored


def read(rows, i):
    place = rows.observation["place"][i].tolist()
    count, episode = (entry[i] for entry in rows.observation["pair"])
    assert [episode, count] == place[:2]
    flags = rows.is_first[i], rows.is_last[i], rows.is_terminal[i]
    return (
        place,
        float(rows.reward[i]),
        *map(bool, flags),
        int(rows.env_steps[i]),
    )


def test_stored_rows_are_these():
    # Environment 0 plays episodes of 1, 2 and 5 steps. The action at row k
    # (from 1) is 3 k mod 10; the row after it has reward count + 10 * action.
    rows = record(make_vector(AutoresetMode.NEXT_STEP))[0]
    assert rows[:6] == [
        ([0, 0, 0], 0.0, True, False, False, 0),
        ([0, 1, 3], 31.0, False, True, False, 1),  # Truncated.
        ([1, 0, 0], 0.0, True, False, False, 0),  # Action 6 was ignored.
        ([1, 1, 9], 91.0, False, False, False, 1),
        ([1, 2, 2], 22.0, False, True, True, 1),  # Terminated.
        ([2, 0, 0], 0.0, True, False, False, 0),
    ]


@pytest.mark.parametrize("repeat", [1, 2])
@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_rows_are_identical_in_all_modes(mode, copy, repeat):
    expected = record(make_vector(AutoresetMode.NEXT_STEP, repeat=repeat))
    actual = record(make_vector(mode, repeat=repeat, copy=copy))
    for one, other in zip(expected, actual, strict=True):
        # The other modes reset within a call and are ahead in the end.
        assert len(other) >= len(one)
        assert other[: len(one)] == one
    last = [row for rows in expected for row in rows if row[3]]
    assert {row[5] for row in last} == ({1} if repeat == 1 else {1, 2})


@pytest.mark.parametrize("mode", MODES[1:], ids=lambda mode: mode.name)
def test_processes_give_the_same_rows(mode):
    if mode is AutoresetMode.DISABLED:
        kwargs = {"shared_memory": True}
    else:
        kwargs = {"shared_memory": False}
    vector = make_vector(mode, AsyncVectorEnv, context="forkserver", **kwargs)
    expected = record(make_vector(mode), calls=6)
    assert record(vector, calls=6) == expected


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_batches_and_dtypes(mode):
    transitions = Transitions(make_vector(mode))
    [rows] = transitions.reset()
    assert rows.active.all() and rows.is_first.all()
    batches = transitions.step(np.zeros(3, int))
    if mode is not AutoresetMode.NEXT_STEP:
        assert batches.pop().active.tolist() == [True, False, False]
    [rows] = batches
    assert rows.active.all() and not rows.is_first.any()
    assert rows.is_last.tolist() == [True, False, False]
    assert rows.reward.dtype == "float32"
    flags = rows.is_first, rows.is_last, rows.is_terminal, rows.active
    assert {flag.dtype.name for flag in flags} == {"bool"}
    assert rows.env_steps.dtype == int


def test_reset_forgets_the_episodes_that_ended():
    transitions = Transitions(make_vector(AutoresetMode.NEXT_STEP))
    transitions.reset()
    transitions.step(np.zeros(3, int))
    transitions.reset()
    [rows] = transitions.step(np.zeros(3, int))
    assert not rows.is_first.any()


def test_seed_reaches_the_vector():
    envs = gymnasium.make_vec("Pendulum-v1", num_envs=2)
    transitions = Transitions(envs)
    first = transitions.reset(seed=3)[0].observation
    np.testing.assert_array_equal(
        transitions.reset(seed=3)[0].observation, first
    )


class Batched(gymnasium.vector.VectorEnv):
    """A vector of one's own: batched last observations, no `env_steps`."""

    num_envs = 2
    observation_space = spaces.Dict(x=spaces.Box(0, 9, (2,)))
    metadata = {"autoreset_mode": "SameStep"}

    def reset(self, *, seed=None, options=None):
        return {"x": np.zeros(2, "float32")}, {}

    def step(self, actions):
        observation = {"x": np.array([1, 0], "float32")}
        infos = {"final_obs": {"x": np.array([7, 5], "float32")}}
        ended = np.array([False, True])
        return observation, np.ones(2), ended, ~ended & False, infos


def test_vector_of_ones_own():
    transitions = Transitions(Batched())
    transitions.reset()
    last, first = transitions.step(np.zeros(2))
    assert last.observation["x"].tolist() == [1, 5]
    assert last.is_terminal.tolist() == [False, True]
    assert last.env_steps.tolist() == [1, 1]
    assert first.observation["x"].tolist() == [1, 0]
    assert first.active.tolist() == [False, True]


def test_missing_mode_is_refused():
    envs = Batched()
    envs.metadata = {}
    with pytest.raises(ValueError, match="NEXT_STEP.*Received: None.*Set it"):
        Transitions(envs)


def test_missing_last_observations_are_refused():
    class Forgetful(Batched):
        def step(self, actions):
            *step, _ = super().step(actions)
            return *step, {"speed": 1}

    transitions = Transitions(Forgetful())
    transitions.reset()
    with pytest.raises(ValueError, match=r"final_obs.*Received: \['speed'\]"):
        transitions.step(np.zeros(2))
