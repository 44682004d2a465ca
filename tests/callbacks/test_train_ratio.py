import collections
import json
import math
import types

import numpy as np
import pytest
from scripted import algorithm_k

from keras_dreamer.callbacks.clock import RatioClock
from keras_dreamer.callbacks.train_ratio import TrainRatio
from keras_dreamer.episode import Episode

LENGTH = 5  # Rows of a window.
TRAINED = 3 * 4  # batch_size * batch_length.


class Replay:
    """Stands in for the replay: counts its windows."""

    capacity = 1000
    length = LENGTH

    def __init__(self, num_envs):
        self.rows = np.zeros(num_envs, int)

    def __len__(self):
        return int(np.maximum(self.rows - LENGTH + 1, 0).sum())


class Driver:
    """Stands in for the driver: rows of the environments in turn.

    Every tenth transition ends an episode of return `step` and length 9.
    """

    def __init__(self, num_envs, repeat=1):
        self.envs = types.SimpleNamespace(num_envs=num_envs)
        self.replay = Replay(num_envs)
        self.step = self.env_steps = self.cut_episodes = 0
        self.repeat = repeat
        self.episodes = collections.deque()
        self.events = []

    def get_state(self):
        return {"step": self.step, "rows": self.replay.rows.tolist()}

    def set_state(self, state):
        self.step = state["step"]
        self.replay.rows[:] = state["rows"]

    def advance(self, limit=1):
        left = self.envs.num_envs - self.step % self.envs.num_envs
        count = min(limit, left)
        assert count > 0
        for _ in range(count):
            stream = self.step % self.envs.num_envs
            self.replay.rows[stream] += 1
            self.events.append(stream)
            self.step += 1
            self.env_steps += self.repeat
            if self.step % 10 == 0:
                self.episodes.append(
                    Episode(stream, self.step, 9, self.step, self.step)
                )
        return count


class Model:
    """Stands in for `Dreamer`."""

    def __init__(self):
        self.exchange = types.SimpleNamespace(interrupted=False)
        self.stop_training = False


DATASET = types.SimpleNamespace(batch_size=3, batch_length=4)


def make(driver, ratio=TRAINED, total_steps=None):
    callback = TrainRatio(driver, ratio, total_steps)
    callback.set_model(Model())
    callback.set_dataset(DATASET)
    return callback


def fit(callback, updates=10**9, steps_per_epoch=7):
    """Calls what Keras calls in `fit`; returns the logs of the epochs."""
    callback.on_train_begin()
    model, epochs = callback.model, []
    model.stop_training = False
    while updates > 0 and not model.stop_training:
        callback.on_epoch_begin(len(epochs))
        for batch in range(min(steps_per_epoch, updates)):
            callback.on_train_batch_begin(batch)
            callback.driver.events.append("update")
            logs = {"loss": 1.0}
            callback.on_train_batch_end(batch, logs)
            if model.stop_training:
                break
        updates -= steps_per_epoch
        epochs.append({"loss": 1.0})
        callback.on_epoch_end(len(epochs) - 1, epochs[-1])
    callback.on_train_end()
    return epochs


@pytest.mark.parametrize("num_envs", [1, 2, 3, 16])
@pytest.mark.parametrize("ratio", [1, 5, 12, 30, 31.7])
@pytest.mark.parametrize("extra", [0, 1, 50, 101])
def test_order_is_that_of_algorithm_k(num_envs, ratio, extra):
    first = TRAINED + num_envs * (LENGTH - 1)
    driver = Driver(num_envs)
    callback = make(driver, ratio, total_steps=first + extra)
    fit(callback)
    expected = algorithm_k(num_envs, first + extra, TRAINED, LENGTH, ratio)
    assert driver.events == expected
    assert driver.events.index("update") == first
    assert callback.model.stop_training
    assert callback.updates == expected.count("update")
    assert abs(callback.updates - 1 - extra * ratio / TRAINED) < 1


def test_updates_of_sixteen_environments_by_hand():
    # 16 environments have no window in 4 rows and one more with each row from
    # then on: 12 windows after 4 * 16 + 12 = 76 transitions, in the middle of
    # a vector step. A ratio of 12 * 2 / 12 = 2 updates for each transition.
    driver = Driver(16)
    fit(make(driver, ratio=24, total_steps=78))
    assert driver.events[76:] == [
        "update",
        12,
        "update",
        "update",
        13,
        "update",
        "update",
    ]


def test_end_of_fit_ends_without_a_budget():
    driver = Driver(3)
    callback = make(driver)
    fit(callback, updates=20)
    assert callback.updates == 20
    assert not callback.model.stop_training
    assert driver.step == TRAINED + 3 * (LENGTH - 1) + 19


def test_next_fit_goes_on_where_the_last_ended():
    driver = Driver(3)
    callback = make(driver, ratio=30, total_steps=100)
    for _ in range(4):
        fit(callback, updates=7)
    fit(callback)
    assert driver.events == algorithm_k(3, 100, TRAINED, LENGTH, 30)


def test_larger_budget_is_honoured_later():
    driver = Driver(3)
    callback = make(driver, ratio=5, total_steps=60)
    fit(callback)
    assert driver.step == 60
    callback.total_steps = 100
    fit(callback)
    assert driver.events == algorithm_k(3, 100, TRAINED, LENGTH, 5)


def test_full_replay_is_trained_on_without_a_burst():
    driver = Driver(2)
    while driver.step < 200:
        driver.advance()
    callback = make(driver, ratio=TRAINED, total_steps=203)
    fit(callback)
    assert driver.events[200:] == [0, "update", 1, "update", 0, "update"]


def test_replay_filled_by_others_needs_no_warm_up():
    driver = Driver(2)
    driver.replay.rows[:] = 100
    fit(make(driver, ratio=TRAINED, total_steps=3))
    assert driver.events == [0, "update", 1, "update", 0, "update"]


@pytest.mark.parametrize("updates", [1, 6, 7, 8, 20])
@pytest.mark.parametrize("ratio", [5, 12, 30])
def test_goes_on_in_another_process(updates, ratio):
    driver = Driver(3)
    callback = make(driver, ratio, total_steps=100)
    fit(callback, updates=updates, steps_per_epoch=updates)
    state = json.loads(json.dumps(callback.get_state()))
    other = make(Driver(3), ratio, total_steps=100)
    other.set_state(state)
    fit(other)
    events = driver.events + other.driver.events
    assert events == algorithm_k(3, 100, TRAINED, LENGTH, ratio)
    assert other.updates == events.count("update")


def test_another_process_has_the_statistics():
    callback = make(Driver(2), ratio=6)
    callback.on_train_begin()
    callback.on_epoch_begin(0)
    for batch in range(5):
        callback.on_train_batch_begin(batch)
        callback.on_train_batch_end(batch)
    # In the middle of the epoch of `test_logs_of_an_epoch`.
    other = make(Driver(2), ratio=6)
    other.set_state(json.loads(json.dumps(callback.get_state())))
    expected, actual = {}, {}
    callback.on_epoch_end(0, expected)
    other.on_train_begin()
    other.on_epoch_begin(0)
    other.on_epoch_end(0, actual)
    for name in ("episode/return", "episodes", "updates", "replay_ratio"):
        assert actual[name] == expected[name], name
    assert actual["episodes"] == 2


def test_updates_that_are_owed_need_no_more_steps():
    # Five updates for each step: stops after the first of step 60.
    callback = make(Driver(1), ratio=60, total_steps=60)
    callback.on_train_begin()
    callback.on_epoch_begin(0)
    while callback.driver.step < 60:
        callback.on_train_batch_begin(0)
        callback.on_train_batch_end(0)
    state = callback.get_state()
    assert state["due"] == 4
    other = make(Driver(1), ratio=60, total_steps=60)
    other.set_state(state)
    assert len(fit(other, steps_per_epoch=1)) == 4
    assert other.driver.step == 60


def test_logs_of_an_epoch():
    driver = Driver(2, repeat=4)
    callback = make(driver, ratio=6)  # An update every other step.
    first, second, third = fit(callback, updates=15, steps_per_epoch=5)
    # The first update comes after 12 + 2 * 4 = 20 steps, the fifth after 28.
    # Episodes have ended at steps 10 and 20.
    assert set(first) == {
        "loss",
        "episode/return",
        "episode/length",
        "episodes",
        "cut_episodes",
        "agent_steps",
        "env_steps",
        "updates",
        "replay_ratio",
        "updates/s",
        "env_steps/s",
    }
    assert all(isinstance(value, int | float) for value in first.values())
    assert first["episode/return"] == (10 + 20) / 2
    assert first["episode/length"] == 9
    assert (first["episodes"], first["cut_episodes"]) == (2, 0)
    assert first["agent_steps"] == 28
    assert first["env_steps"] == 28 * 4
    assert first["updates"] == 5
    # 5 * 12 trained steps for the 8 agent steps since the first update.
    assert first["replay_ratio"] == 5 * 12 / 8
    # 10 more agent steps; an episode ended at 30. Speeds are of the epoch.
    assert (second["agent_steps"], second["episodes"]) == (38, 1)
    assert second["episode/return"] == 30
    assert second["env_steps/s"] / second["updates/s"] == pytest.approx(8)
    assert third["replay_ratio"] == pytest.approx(15 * 12 / 28)


def test_epoch_without_an_episode_has_no_return():
    driver = Driver(2)
    logs = fit(make(driver), updates=2, steps_per_epoch=1)[1]
    assert driver.step == 21
    assert logs["episodes"] == 0
    assert math.isnan(logs["episode/return"])
    assert math.isnan(logs["episode/length"])


def test_batch_logs_have_the_same_names():
    callback = make(Driver(2))
    callback.on_train_begin()
    callback.on_epoch_begin(0)
    callback.on_train_batch_begin(0)
    batch, epoch = {}, {}
    callback.on_train_batch_end(0, batch)
    callback.on_epoch_end(0, epoch)
    assert batch.keys() == epoch.keys()
    callback.on_train_batch_begin(1)
    callback.on_train_batch_end(1)  # Logs may be missing.
    callback.on_epoch_end(1)


def test_interrupt_ends_the_collection():
    callback = make(Driver(2))
    callback.on_train_begin()
    callback.on_epoch_begin(0)
    callback.model.exchange.interrupted = True
    with pytest.raises(KeyboardInterrupt):
        callback.on_train_batch_begin(0)
    assert callback.driver.step == 0


def test_starts_the_clock_of_the_ratio():
    callback = make(Driver(1), ratio=36)
    callback.on_train_begin()
    assert isinstance(callback._clock, RatioClock)
    assert callback._clock.ratio == 3.0


@pytest.mark.parametrize("ratio", [0, -1])
def test_ratio_that_never_trains_is_refused(ratio):
    with pytest.raises(ValueError, match=f"positive.*ratio={ratio}.*leave the"):
        TrainRatio(Driver(1), ratio)


def test_other_datasets_are_refused():
    callback = TrainRatio(Driver(1), 1)
    with pytest.raises(ValueError, match="needs a `ReplayDataset`.*Call"):
        callback.on_train_begin()


def test_capacity_below_the_gate_is_refused():
    driver = Driver(1)
    driver.replay.capacity = TRAINED - 1
    with pytest.raises(
        ValueError, match="12 windows before.*capacity=11.*larger capacity"
    ):
        make(driver).on_train_begin()


def test_budget_without_an_update_is_refused():
    first = TRAINED + 3 * (LENGTH - 1)
    with pytest.raises(
        ValueError,
        match=f"after {first} agent steps.*total_steps={first - 1}. Raise it",
    ):
        make(Driver(3), total_steps=first - 1).on_train_begin()
    make(Driver(3), total_steps=first).on_train_begin()


def test_budget_that_is_used_up_is_refused():
    driver = Driver(3)
    callback = make(driver, total_steps=50)
    fit(callback)
    with pytest.raises(ValueError, match="50 are used.*total_steps=50"):
        callback.on_train_begin()
