import dataclasses

import numpy as np
import pytest
from faulty import faulty

from keras_dreamer.envs.make import make
from keras_dreamer.envs.restarts import RESTARTED
from keras_dreamer.envs.restarts import Restarting
from keras_dreamer.envs.restarts import Restarts


@dataclasses.dataclass(frozen=True)
class Constructor:
    fault: str = "raise"
    index: int = 3
    seed: int = 5

    def __call__(self):
        env = faulty(self.fault)()
        env.constructed = self.seed
        return env


def test_successors_have_new_seeds():
    restarts = Restarts(Constructor())
    with pytest.warns(UserWarning, match="Environment 3 is.*restart 1.*fire"):
        first = restarts.successor("fire")
    with pytest.warns(UserWarning, match="restart 2.*water"):
        second = restarts.successor("water")
    assert (first.fault, first.index) == ("raise", 3)
    assert len({5, first.seed, second.seed}) == 3


@pytest.mark.filterwarnings("ignore:Environment 3 is replaced")
def test_seeds_follow_from_the_last_one_given():
    def successor(*seeds):
        restarts = Restarts(Constructor())
        for seed in seeds:
            restarts.seeded(seed)
        return restarts.successor("").seed

    assert successor() == successor(None) == successor(8, 5)
    assert successor(8) == successor(8, None) != successor()


@pytest.mark.filterwarnings("ignore:Environment 3 is replaced")
def test_five_in_a_row_are_the_limit():
    restarts = Restarts(Constructor())
    for _ in range(2):
        for _ in range(5):
            restarts.successor("fire")
        restarts.completed()
    for _ in range(5):
        restarts.successor("fire")
    with pytest.raises(RuntimeError, match="5 restarts of env.* 3 .*: water"):
        restarts.successor("water")


def test_step_that_raises_becomes_a_reset():
    env = Restarting(Constructor())
    env.reset(seed=5)
    env.step(0)
    broken = env.env
    with pytest.warns(UserWarning, match="(?s)Stubborn: code 42.*in step"):
        observation, *step, info = env.step(1)
    assert env.env is not broken
    assert env.env.seed == env.env.constructed != 5
    assert observation.tolist() == [0, env.env.seed % 1000]
    assert step == [0.0, False, False] and info == {RESTARTED: True}
    assert env.step(0)[0][0] == 1


def test_reset_that_raises_is_one_of_a_fresh_environment():
    env = Restarting(Constructor("reset"))
    env.reset(seed=5)
    with pytest.warns(UserWarning, match="code 41"):
        observation, _ = env.reset()
    assert observation[0] == 0 and observation[1] != 5


@pytest.mark.filterwarnings("ignore:Environment 3 is replaced")
def test_constructors_that_raise_count_as_well():
    class Burnt(Constructor):
        def __call__(self):
            if self.seed != 5:
                raise OSError("burnt")
            return super().__call__()

    env = Restarting(Burnt())
    env.reset(seed=5)
    with pytest.raises(RuntimeError, match="5 restarts.*OSError: burnt"):
        env.step(1)


def test_what_never_worked_raises():
    def factory():
        raise KeyError("no robot")

    with pytest.raises(KeyError, match="no robot"):
        make(factory, on_env_error="restart")


@pytest.mark.parametrize("repeat", [1, 2])
def test_vector_in_this_process_and_processes_agree(repeat):
    runs = []
    for mode in "sync", "process":
        envs = make(faulty("raise"), 2, repeat, 4, mode, on_env_error="restart")
        rows = [envs.reset()]
        for action in (0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0):
            if action:
                with pytest.warns(UserWarning, match="Environment 1 is"):
                    rows.append(envs.step(np.array([0, 1])))
            else:
                rows.append(envs.step(np.array([0, 0])))
        envs.close()
        runs.append(rows)
    np.testing.assert_equal(runs[1], runs[0])


def test_by_default_errors_pass_through():
    envs = make(faulty("raise"), 2)
    envs.reset()
    with pytest.raises(Exception, match="code 42"):
        envs.step(np.array([0, 1]))
