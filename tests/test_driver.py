import functools
import json

import gymnasium
import keras
import numpy as np
import pytest
from faulty import faulty
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.vector import SyncVectorEnv
from helpers import to_numpy
from scripted import CONTINUOUS
from scripted import Puppet
from scripted import Scripted
from scripted import expected_rows
from scripted import make_scripted
from scripted import scripted_envs

import keras_dreamer as kd
from keras_dreamer.driver import Driver
from keras_dreamer.envs import make


class Streams:
    """Stands in for the replay: a list of rows for every environment."""

    def __init__(self, num_envs):
        self.rows = [[] for _ in range(num_envs)]
        self.order = []

    def add_batch(self, steps, streams):
        for index, stream in enumerate(streams):
            row = keras.tree.map_structure(lambda x, i=index: x[i], steps)
            self.rows[stream].append(row)
            self.order.append(int(stream))


def make_driver(envs):
    replay = Streams(envs.num_envs)
    return Driver(envs, Puppet(envs), replay), replay


def advance(driver, count):
    while driver.step < count:
        assert driver.advance(count - driver.step) > 0


FLAGS = ("is_first", "is_last", "is_terminal")


def readable(row):
    """Returns the part of a row that the script knows, as Python values."""
    return {
        "observation": row["observation"]["observation"].tolist(),
        "reward": float(row["reward"]),
        **{name: bool(row[name]) for name in FLAGS},
    }


@pytest.mark.parametrize("num_envs", [1, 3, 16])
def test_rows_are_these(num_envs):
    envs = make_scripted(num_envs)
    driver, replay = make_driver(envs)
    advance(driver, 20 * num_envs)
    assert replay.order == list(range(num_envs)) * 20
    for number, rows in enumerate(replay.rows):
        assert list(map(readable, rows)) == expected_rows(number, 20)


def test_rows_of_the_first_episodes_by_hand():
    # Episode 0 has 1 step and terminates, episode 1 has 2 and is truncated.
    driver, replay = make_driver(make_scripted(1))
    advance(driver, 6)
    rows = replay.rows[0]
    observations = [row["observation"]["observation"].tolist() for row in rows]
    assert observations == [
        [0, 0, 0],
        [0, 0, 1],
        [0, 1, 0],
        [0, 1, 1],
        [0, 1, 2],
        [0, 2, 0],
    ]
    assert [float(row["reward"]) for row in rows] == [
        0.0,
        0.125,
        0.0,
        1.125,
        1.25,
        0.0,
    ]
    flags = np.array([[bool(row[name]) for row in rows] for name in FLAGS])
    np.testing.assert_array_equal(
        flags.astype(int),
        [[1, 0, 1, 0, 0, 1], [0, 1, 0, 0, 1, 0], [0, 1, 0, 0, 0, 0]],
    )
    # The state is that after the row's observation, reset at is_first.
    latents = [row["context"]["deter"].tolist() for row in rows]
    assert latents == [[0, 0], [1, 1], [0, 0], [1, 1], [2, 2], [0, 0]]
    assert [row["context"]["stoch"].tolist() for row in rows] == [
        [0],
        [1],
        [0],
        [1],
        [2],
        [0],
    ]


def test_actions_are_stored_as_sampled_and_zeroed_at_the_end():
    # The policy says (steps + 1) / 4: above 1 from the fifth row on. The
    # environment gets it clipped to [-1, 1] and scaled to [-2, 2].
    envs = make_scripted(1, lengths=(6, 1))
    driver, replay = make_driver(envs)
    advance(driver, 9)
    stored = [float(row["action"]["action"][0]) for row in replay.rows[0]]
    assert stored == [0.25, 0.5, 0.75, 1, 1.25, 1.5, 0, 0.25, 0]
    received = [float(action[0]) for action in scripted_envs(envs)[0].received]
    assert received == [0.5, 1, 1.5, 2, 2, 2, 0.5]


def test_discrete_actions_are_zeroed_at_the_end():
    space = spaces.Discrete(5, start=3)
    envs = make_scripted(1, lengths=(2,), action_space=space)
    driver, replay = make_driver(envs)
    advance(driver, 6)
    stored = [int(row["action"]["action"]) for row in replay.rows[0]]
    assert stored == [1, 2, 0, 1, 2, 0]
    received = [int(action) for action in scripted_envs(envs)[0].received]
    assert received == [4, 5, 4, 5]


def test_episodes_come_out_as_events():
    driver, _ = make_driver(make_scripted(2))
    advance(driver, 12)
    # Environment 0 plays 1, 2, ... steps, environment 1 plays 2, 5, ... Rows
    # alternate: row r of environment w is transition 2 r + w + 1.
    events = [
        (e.stream, e.episode_return, e.length, e.step, e.env_steps)
        for e in driver.episodes
    ]
    assert events == [
        (0, 0.125, 1, 3, 1),
        (1, 0.125 + 0.25, 2, 6, 3),
        (0, 1.125 + 1.25, 2, 9, 5),
    ]


@pytest.mark.parametrize("num_envs", [1, 2])
@pytest.mark.parametrize("repeat", [1, 2, 4])
def test_environment_steps_count_repeats_and_no_resets(repeat, num_envs):
    envs = make_scripted(num_envs, repeat, lengths=(5,))
    driver, _ = make_driver(envs)
    # 5 simulator steps in rows of `repeat`, the last one shorter.
    rows = [0, *[repeat] * (5 // repeat), *[5 % repeat] * (5 % repeat > 0)]
    advance(driver, 2 * num_envs * len(rows))
    assert driver.step == 2 * num_envs * len(rows)
    assert driver.env_steps == 2 * num_envs * 5
    assert {event.length for event in driver.episodes} == {len(rows) - 1}
    advance(driver, driver.step + num_envs)  # The resets.
    assert driver.env_steps == 2 * num_envs * 5
    advance(driver, driver.step + 1)
    assert driver.env_steps == 2 * num_envs * 5 + rows[1]


def test_advance_stops_at_the_limit_and_at_the_end_of_a_vector_step():
    envs = make_scripted(4)
    driver, replay = make_driver(envs)
    received = scripted_envs(envs)[0].received
    assert [driver.advance(limit) for limit in (1, 2, 9)] == [1, 2, 1]
    assert len(received) == 0  # Only resets so far.
    assert driver.advance(9) == 4
    assert len(received) == 1
    assert driver.advance() == 1
    assert replay.order == [0, 1, 2, 3, 0, 1, 2, 3, 0]


def _plain(value):
    return np.asarray(value).tolist()


def record(mode, count):
    envs = SyncVectorEnv(
        [lambda number=number: Scripted(number) for number in range(3)],
        autoreset_mode=mode,
    )
    driver, replay = make_driver(envs)
    while min(map(len, replay.rows)) < count:
        driver.advance(7)
    rows = [
        keras.tree.map_structure(_plain, stream[:count])
        for stream in replay.rows
    ]
    return rows, list(driver.episodes), driver


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda m: m.name)
def test_every_autoreset_mode_gives_the_same_streams(mode):
    expected, *_ = record(AutoresetMode.NEXT_STEP, 25)
    actual, episodes, driver = record(mode, 25)
    assert actual == expected
    for number, rows in enumerate(driver.replay.rows):
        assert list(map(readable, rows)) == expected_rows(number, len(rows))
        ended = sum(bool(row["is_last"]) for row in rows)
        assert ended == sum(event.stream == number for event in episodes)
    firsts = sum(bool(row["is_first"]) for s in driver.replay.rows for row in s)
    assert driver.env_steps == driver.step - firsts


class Faulty(Scripted):
    """Returns a bad value at the second step of its third episode."""

    observation_space = spaces.Dict(
        place=spaces.Box(-np.inf, np.inf, (3,)),
        reward=spaces.Box(-np.inf, np.inf, ()),
    )

    def __init__(self, number, key, value):
        super().__init__(number, lengths=(5,))
        self.key, self.value = key, value

    def reset(self, **kwargs):
        return self._nest(*super().reset(**kwargs))

    def step(self, action):
        place, reward, *rest = super().step(action)
        now = (self.number, self.episode, self.count) == (1, 2, 2)
        bad = self.value if now else None
        if now and self.key == "reward of the step":
            reward = self.value
        return *self._nest(place, reward, bad)[:2], *rest

    def _nest(self, place, signal, bad=None):
        nest = {"place": place, "reward": np.float32(0.5)}
        if bad is not None and self.key == "place":
            place[1] = bad
        if bad is not None and self.key == "reward":
            nest["reward"] = np.float32(bad)
        return nest, signal


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        ("place", np.nan, r"observation/place=\[.*nan.*"),
        ("place", np.inf, r"observation/place=\[.*inf.*"),
        ("reward", np.nan, "observation/reward=nan"),
        ("reward of the step", np.nan, ": reward=nan"),
        ("reward of the step", np.inf, ": reward=inf"),
        ("reward of the step", -np.inf, ": reward=-inf"),
    ],
)
def test_values_that_are_not_finite_are_refused(key, value, named):
    driver, replay = make_driver(
        make_scripted(2, env=Faulty, key=key, value=value)
    )
    message = f"finite.*{named} from env 1 at step 2 of.*Fix the environment"
    with pytest.raises(ValueError, match=message):
        advance(driver, 100)
    # Two episodes of 6 rows, then the rows of steps 0 and 1.
    assert [len(rows) for rows in replay.rows] == [14, 14]
    values = [row["observation"]["place"] for row in replay.rows[1]]
    assert np.isfinite(values).all()


@pytest.mark.parametrize("key", ["place", "reward"])
def test_minus_infinity_marks_what_is_not_available(key):
    envs = make_scripted(2, env=Faulty, key=key, value=-np.inf)
    driver, replay = make_driver(envs)
    advance(driver, 40)
    row = replay.rows[1][14]
    assert np.isneginf(row["observation"][key]).any()
    assert np.isfinite(row["reward"])


@pytest.mark.parametrize("name", ["action/action", "deter"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_of_the_policy_that_are_not_finite_are_refused(name, value):
    driver, replay = make_driver(make_scripted(2, lengths=(50,)))
    policy = driver.model.policy

    def broken(*args):
        state = keras.tree.map_structure(to_numpy, policy(*args))
        if driver.step == 6:
            place = {"deter": state["deter"], **state["action"]}
            place[name.split("/")[-1]][1, 0] = value
        return keras.tree.map_structure(keras.ops.convert_to_tensor, state)

    driver.model.policy = broken
    message = f"policy.*finite.*{name}=.*for env 1 at step 3 of.*diverged"
    with pytest.raises(ValueError, match=message):
        advance(driver, 100)
    assert [len(rows) for rows in replay.rows] == [3, 3]


def broken_rows(mode):
    """Returns the rows of three environments, the second one breaks.

    It does so at its third step, and the fresh one too.
    """
    envs = make(faulty("raise"), 3, seed=1, mode=mode, on_env_error="restart")
    driver, replay = make_driver(envs)
    driver.model.policy = functools.partial(
        break_at, driver.model.policy, count=2, env=1
    )
    with pytest.warns(UserWarning, match="Environment 1 is replaced"):
        advance(driver, 3 * 12)
    envs.close()
    return driver, replay.rows


@pytest.mark.parametrize("mode", ["sync", "process"])
def test_broken_step_is_the_reset_of_the_next_environment(mode):
    driver, rows = broken_rows(mode)
    rows = [
        [
            (*readable(row).values(), int(row["action"]["action"]))
            for row in stream
        ]
        for stream in rows
    ]
    whole = [count for (count, _), *_ in rows[0]]
    assert whole == [*range(10), 0, 1]
    seeds = [seed for (_, seed), *_ in rows[1]]
    assert len(set(seeds)) == 4 and sorted(seeds, key=seeds.index) == seeds
    for row, (observation, reward, *flags, action) in enumerate(rows[1]):
        assert observation[0] == row % 3
        assert reward == (row % 3 > 0)
        assert flags == [row % 3 == 0, False, False]
        assert action == (row % 3 == 2)  # The one that broke it.
    # Only whole episodes are told; nothing is counted of a broken step.
    told = [(e.stream, e.episode_return, e.length) for e in driver.episodes]
    assert told == [(0, 9.0, 9), (2, 9.0, 9)]
    assert driver.env_steps == 2 * 10 + 2 * 4
    assert driver.cut_episodes == 3
    assert driver.get_state()["cut_episodes"] == 3


def test_no_window_goes_on_across_a_broken_step():
    envs = make(faulty("raise"), 1, seed=1, on_env_error="restart")
    driver, _ = make_driver(envs)
    config = kd.Config(batch_length=5, deter=2, blocks=2, stoch=1, classes=7)
    driver.replay = replay = kd.replay.Replay(config, envs, dtype="float32")
    driver.model.policy = functools.partial(
        break_at, driver.model.policy, count=3, env=0
    )
    with pytest.warns(UserWarning, match="Environment 0 is replaced"):
        advance(driver, 6)
    batch = replay.sample(1)
    count = batch["observation"]["observation"][0, :, 0]
    assert count.tolist() == [0, 1, 2, 3, 0, 1]
    assert np.flatnonzero(batch["is_first"]).tolist() == [0, 4]
    assert np.flatnonzero(batch["is_last"]).tolist() == [3]
    assert not batch["is_terminal"].any()


def break_at(policy, observation, *args, count, env):
    """A policy that breaks a `faulty` environment after so many steps."""
    state = policy(observation, *args)
    steps = observation["observation"][:, 0]
    breaks = (steps == count) & (np.arange(len(steps)) == env)
    state["action"]["action"] = keras.ops.convert_to_tensor(breaks, "int32")
    return state


def test_other_spaces_than_the_models_are_refused():
    envs = make("gym:CartPole-v1")
    model = Puppet(make_scripted(1))
    with pytest.raises(
        ValueError,
        match=r"observation space must be the model's.*\['observation'\].*"
        r"Received: .*\(4,\).*required: .*\(3,\).*Build the model",
    ):
        Driver(envs, model, Streams(1))
    model.observation_space = envs.single_observation_space
    with pytest.raises(ValueError, match="action space must be the model's"):
        Driver(envs, model, Streams(1))


def test_bounds_may_differ_from_the_models():
    # Only what the network sees must agree.
    envs = make_scripted(1)
    model = Puppet(envs)
    model.observation_space = spaces.Box(-1, 1, (3,))
    Driver(envs, model, Streams(1))


def test_gymnasium_vectors_work_as_they_are():
    envs = gymnasium.make_vec("Pendulum-v1", num_envs=2)
    driver, replay = make_driver(envs)
    advance(driver, 10)
    assert replay.order == [0, 1] * 5
    assert replay.rows[0][0]["observation"]["observation"].shape == (3,)
    assert CONTINUOUS.shape == envs.single_action_space.shape


def test_goes_on_with_its_counters_in_new_episodes():
    envs = make_scripted(3)
    driver, _ = make_driver(envs)
    advance(driver, 31)  # In the middle of a step of the environments.
    state = json.loads(json.dumps(driver.get_state()))
    assert state["step"] == 31 and len(state["episodes"]) > 1
    seeds = []
    for _ in range(2):
        other, replay = make_driver(make_scripted(3))
        reset = other.envs.reset
        other.envs.reset = lambda seed, reset=reset, **kwargs: (
            seeds.append(seed) or reset(seed=seed, **kwargs)
        )
        other.set_state(state)
        assert other.episodes == driver.episodes
        assert other.env_steps == driver.env_steps
        advance(other, 31 + 9)
        for number, rows in enumerate(replay.rows):
            assert list(map(readable, rows)) == expected_rows(number, 3)
    first, again = seeds
    assert first == again and len(set(first)) == 3
    assert not set(first) & set(envs.seeds)
    # The unfinished episodes count for nothing.
    ended = list(other.episodes)[len(driver.episodes) :]
    assert [episode.length for episode in ended] == [1, 2]
    assert all(31 < episode.step <= 40 for episode in ended)


def test_goes_on_in_the_same_process():
    driver, replay = make_driver(make_scripted(2))
    advance(driver, 5)
    driver.set_state(driver.get_state())
    advance(driver, 7)
    assert replay.order == [0, 1, 0, 1, 0, 0, 1]
    assert [bool(row["is_first"]) for row in replay.rows[0]] == [1, 0, 1, 1]
