import math
import types

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from scripted import Puppet
from scripted import Scripted
from scripted import make_scripted

import keras_dreamer as kd
from keras_dreamer.callbacks.evaluate import Evaluate

NAMES = ["evaluation/return", "evaluation/length", "evaluation/ci"]


def start(callback, envs, ratio=None):
    model = Puppet(envs)
    model.exchange = types.SimpleNamespace(interrupted=False)
    callback.set_model(model)
    callback.set_ratio(ratio)
    callback.on_train_begin()
    return model


def ratio_of(envs=None, env_steps=0):
    driver = types.SimpleNamespace(envs=envs, env_steps=env_steps)
    return types.SimpleNamespace(driver=driver)


def end_epochs(callback, count):
    epochs = [{"loss": 1.0} for _ in range(count)]
    for epoch, logs in enumerate(epochs):
        callback.on_epoch_end(epoch, logs)
        assert list(logs) == ["loss", *NAMES]
    return [logs["evaluation/return"] for logs in epochs], epochs


def test_logs_after_every_so_many_epochs():
    envs = make_scripted(1)
    callback = Evaluate(envs, every=2, episodes=3)
    start(callback, envs)
    returns, epochs = end_epochs(callback, 5)
    assert [math.isnan(x) for x in returns] == [1, 0, 1, 0, 1]
    # The episodes of tests/test_playing.py.
    own = np.array([0.125, 2.375, 11.875])
    assert returns[1] == pytest.approx(own.mean())
    assert epochs[1]["evaluation/length"] == pytest.approx(8 / 3)
    error = own.std(ddof=1) / 3**0.5
    assert epochs[1]["evaluation/ci"] == pytest.approx(4.302653 * error)
    # The next evaluation plays new episodes.
    assert returns[3] != returns[1]


def test_logs_after_every_so_many_environment_steps():
    envs, ratio = make_scripted(1), ratio_of()
    callback = Evaluate(envs, every="1_000 env steps", episodes=1)
    start(callback, envs, ratio)
    known = []
    for steps in (0, 999, 1000, 1500, 3200, 3900, 4000):
        ratio.driver.env_steps = steps
        (score,), _ = end_epochs(callback, 1)
        known.append(not math.isnan(score))
    assert known == [0, 0, 1, 0, 1, 0, 1]
    again = Evaluate(envs, every="1,000 environment steps", episodes=1)
    again.set_state(callback.get_state())
    start(again, envs, ratio)
    (score,), _ = end_epochs(again, 1)
    assert math.isnan(score) and again.get_state() == callback.get_state()


class Walk(Scripted):
    """Remembers its seeds, and whether it was closed."""

    made = []

    def reset(self, *, seed=None, options=None):
        self.seed = seed
        return super().reset(seed=seed)

    def close(self):
        self.closed = True


@pytest.fixture
def walk():
    def make():
        Walk.made.append(Walk(lengths=(7,)))
        return Walk.made[-1]

    gymnasium.register("Walk-v0", entry_point=make)
    yield "gym:Walk-v0"
    del gymnasium.registry["Walk-v0"]
    Walk.made.clear()


def test_a_name_makes_environments_like_those_of_training(walk):
    trained = make_scripted(1, action_repeat=2)
    callback = Evaluate(walk, episodes=3, seed=4)
    start(callback, trained, ratio_of(trained))
    _, (logs,) = end_epochs(callback, 1)
    # 7 steps in pairs.
    assert len(Walk.made) == 3 and logs["evaluation/length"] == 4
    callback.on_train_end()
    assert all(env.closed for env in Walk.made)
    # Another `fit`, without environments.
    start(callback, trained)
    _, (logs,) = end_epochs(callback, 1)
    assert len(Walk.made) == 6 and logs["evaluation/length"] == 7


def test_environments_of_the_user_stay_open():
    envs = make_scripted(1)
    envs.close = lambda: pytest.fail("They belong to the user.")
    callback = Evaluate(envs)
    start(callback, envs)
    callback.on_train_end()


def test_ctrl_c_abandons_an_evaluation():
    envs = make_scripted(1)
    callback = Evaluate(envs)
    model = start(callback, envs)
    policy = model.policy

    def interrupt(*arguments):
        model.exchange.interrupted = True
        return policy(*arguments)

    model.policy = interrupt
    (score,), _ = end_epochs(callback, 1)
    assert math.isnan(score)


def test_noise_is_its_own_and_another_in_each_evaluation():
    envs = make_scripted(1, lengths=(2,))
    callback, drawn = Evaluate(envs, episodes=1), []
    model = start(callback, envs)
    policy = model.policy

    def remember(observation, state, is_first, noise):
        drawn.append(noise[1]["action"].item())
        return policy(observation, state, is_first, noise)

    model.policy = remember
    end_epochs(callback, 2)
    assert len(drawn) == len(set(drawn)) == 6 and model.action_noise.drawn == 0


@pytest.mark.parametrize("every", [0, -1, "10", "10 steps", "0 env steps", 1.5])
def test_other_intervals_are_refused(every):
    with pytest.raises(ValueError, match="`every` must be.*Use for example 5"):
        Evaluate("gym:CartPole-v1", every=every)


def test_environment_steps_need_a_driver():
    envs = make_scripted(1)
    with pytest.raises(ValueError, match="only beside `TrainRatio`"):
        start(Evaluate(envs, every="5 env steps"), envs)


def test_environments_of_training_are_refused():
    envs = make_scripted(1)
    with pytest.raises(ValueError, match="not be the environments of the `Dr"):
        start(Evaluate(envs), envs, ratio_of(envs))


def test_other_spaces_are_refused_at_the_start():
    envs = make_scripted(1)
    others = make_scripted(1, action_space=spaces.Discrete(3))
    with pytest.raises(ValueError, match="action space must be the model's"):
        start(Evaluate(others), envs)


def test_no_episodes_are_refused():
    with pytest.raises(ValueError, match="at least 1"):
        kd.callbacks.Evaluate(make_scripted(1), episodes=0)
