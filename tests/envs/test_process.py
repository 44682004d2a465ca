import os
import time

import gymnasium
import numpy as np
import pytest

from keras_dreamer.envs.make import make
from keras_dreamer.envs.process import Contained


def faulty(fault):
    """Returns a factory whose environment 1 fails when its action is 1."""

    def factory():
        # All local, so that it travels to the workers by value.
        from gymnasium import spaces

        class Stubborn(Exception):
            def __init__(self, code, lock):
                super().__init__(f"code {code} 100%d")
                self.lock = lock  # Cannot be pickled.

        class Faulty(gymnasium.Env):
            observation_space = spaces.Dict(x=spaces.Box(0, 9, ()))
            action_space = spaces.Discrete(2)

            def reset(self, *, seed=None, options=None):
                return {"x": 0.0}, {}

            def step(self, action):
                if action and fault == "raise":
                    raise Stubborn(42, (i for i in []))
                if action and fault == "die":
                    os._exit(7)
                if action and fault == "hang":
                    time.sleep(1000)
                shape = (2,) if action and fault == "shape" else ()
                return {"x": np.zeros(shape)}, 0.0, False, False, {}

        return Faulty()

    return factory


@pytest.mark.parametrize(
    "fault, error, words",
    [
        ("raise", RuntimeError, r"(?s)code 42.*Environment 1.*in step"),
        ("shape", ValueError, r"(?s)'x'.*environment 1 at step 2"),
        ("die", RuntimeError, r"exit codes \{1: 7\}"),
        ("hang", TimeoutError, r"nothing from environments \[1\]"),
    ],
)
def test_faults_are_told_and_leave_no_process(fault, error, words):
    envs = make(faulty(fault), 2, mode="process", timeout=60.0)
    processes = envs.unwrapped.processes
    envs.reset()
    envs.step(np.array([0, 0]))
    envs.env.timeout = 1.0 if fault == "hang" else 60.0
    with pytest.raises(error, match=words):
        envs.step(np.array([0, 1]))
    assert not any(process.is_alive() for process in processes)
    assert envs.closed
    envs.close()


def test_close_ends_a_worker_that_does_not_answer(monkeypatch):
    monkeypatch.setattr("keras_dreamer.envs.process._GRACE", 0.2)
    envs = make(faulty("hang"), 1, mode="process", timeout=60.0)
    envs.reset()
    envs.unwrapped.step_async(np.array([1]))
    envs.close()
    assert not envs.unwrapped.processes[0].is_alive()


def test_error_at_reset_becomes_an_info():
    env = gymnasium.make("CartPole-v1")
    env.reset = lambda seed, options: 1 / 0
    observation, info = Contained(env, 3).reset()
    assert env.observation_space.contains(observation)
    is_value_error, text = info["worker_error"]
    assert not is_value_error
    assert "Environment 3 raised ZeroDivisionError" in text


def test_what_cannot_be_rendered_does_not_end_the_worker():
    class Blind(gymnasium.Env):
        def render(self):
            raise OSError("no display")

    assert Contained(Blind(), 0).render() == "OSError: no display"
