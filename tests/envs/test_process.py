import gymnasium
import numpy as np
import pytest
from faulty import faulty

from keras_dreamer.envs.make import make


def make_faulty(fault, num_envs=2, **kwargs):
    kwargs = {"mode": "process", "timeout": 60.0, **kwargs}
    return make(faulty(fault), num_envs, **kwargs)


def alive(envs):
    return [w.index for w in envs.unwrapped.workers if w.process.is_alive()]


def only(index, num_envs):
    """Returns actions that break one of the environments."""
    return (np.arange(num_envs) == index).astype(int)


@pytest.mark.parametrize("num_envs", [1, 2, 16])
@pytest.mark.parametrize(
    "fault, error, words",
    [
        ("raise", RuntimeError, r"(?s)code 42.*Environment {}.*in step"),
        ("die", RuntimeError, r"environment {} died with exit code 7"),
        ("hang", TimeoutError, r"nothing from environment {} in 0.5 seconds"),
    ],
)
def test_faults_are_told_and_leave_no_process(fault, error, words, num_envs):
    envs = make_faulty(fault, num_envs)
    envs.reset()
    envs.step(np.zeros(num_envs, int))
    envs.env.timeout = 0.5 if fault == "hang" else 60.0
    with pytest.raises(error, match=words.format(num_envs // 2)):
        envs.step(only(num_envs // 2, num_envs))
    assert not alive(envs)
    assert envs.closed
    envs.close()


@pytest.mark.parametrize(
    "fault, error, words",
    [
        ("shape", ValueError, r"(?s)'observation'.*environment 1 at step 2"),
        ("info", RuntimeError, r"(?s)cannot pickle.*Environment 1 raised"),
    ],
)
def test_bad_results_are_told(fault, error, words):
    envs = make_faulty(fault)
    envs.reset()
    envs.step(np.zeros(2, int))
    with pytest.raises(error, match=words):
        envs.step(np.array([0, 1]))
    assert not alive(envs)


def test_construction_may_take_longer_than_a_step():
    def factory():
        import time

        import gymnasium

        time.sleep(0.5)
        return gymnasium.make("CartPole-v1")

    envs = make(factory, mode="process", timeout=0.1)
    assert alive(envs) == [0]
    envs.close()


def test_error_of_a_constructor_is_told():
    def factory():
        raise KeyError("no robot")

    with pytest.raises(RuntimeError, match="(?s)no robot.*Environment 0 rais"):
        make(factory, mode="process", on_env_error="restart")


@pytest.mark.parametrize("fault", ["raise", "die", "hang"])
def test_broken_environment_is_replaced_by_a_fresh_one(fault):
    envs = make_faulty(fault, 3, on_env_error="restart")
    start, _ = envs.reset()
    envs.step(np.zeros(3, int))
    envs.env.timeout = 0.5 if fault == "hang" else 60.0
    words = {"raise": "code 42", "die": "code 7", "hang": "nothing"}[fault]
    with pytest.warns(UserWarning, match=rf"(?s)Environment 1 is.*{words}"):
        observation, reward, *ended, infos = envs.step(only(1, 3))
    # Counts, and seeds, of which the broken one has another.
    assert observation[:, 0].tolist() == [2, 0, 2]
    changed = observation[:, 1] != start[:, 1]
    assert changed.tolist() == [False, True, False]
    assert reward.tolist() == [1, 0, 1]
    assert not np.any(ended)
    assert infos["env_steps"].tolist() == [1, 0, 1]
    envs.env.timeout = 60.0
    observation, *_ = envs.step(np.zeros(3, int))
    assert observation[:, 0].tolist() == [3, 1, 3]
    assert alive(envs) == [0, 1, 2]
    envs.close()
    assert not alive(envs)


def test_several_may_break_at_once_and_at_their_resets():
    envs = make_faulty("reset", on_env_error="restart")
    envs.reset()
    for _ in range(9):
        *_, terminated, truncated, _ = envs.step(np.zeros(2, int))
    assert terminated.all()
    with pytest.warns(UserWarning, match="(?s)code 41") as warnings:
        observation, *_ = envs.step(np.zeros(2, int))
    assert len(warnings) == 2
    assert observation[:, 0].tolist() == [0, 0]
    observation, *_ = envs.step(np.zeros(2, int))
    assert observation[:, 0].tolist() == [1, 1]
    envs.close()


@pytest.mark.filterwarnings("ignore:Environment 0 is replaced")
def test_endless_loops_of_restarts_end():
    envs = make_faulty("die", on_env_error="restart")
    envs.reset()
    for _ in range(5):
        envs.step(np.array([1, 0]))
    with pytest.raises(RuntimeError, match="(?s)5 restarts of environment 0"):
        envs.step(np.array([1, 0]))
    assert not alive(envs)


@pytest.mark.filterwarnings("ignore:Environment 0 is replaced")
def test_completed_steps_allow_more_restarts():
    envs = make_faulty("raise", on_env_error="restart")
    envs.reset()
    for action in (1, 1, 1, 0, 1, 1, 1, 0):
        observation, *_ = envs.step(np.array([action, 0]))
        assert observation[0, 0] == 1 - action
    envs.close()


def test_unequal_spaces_are_refused(tmp_path):
    made = tmp_path / "made"

    def factory():
        size = 2 if made.exists() else 3
        made.touch()
        env = gymnasium.make("CartPole-v1")
        env.observation_space = gymnasium.spaces.Box(-1, 1, (size,))
        return env

    with pytest.raises(ValueError, match="same spaces.*environment 1"):
        make(factory, 2, mode="process")


def test_interrupted_step_is_completed_by_the_next(monkeypatch):
    envs = make_faulty("raise", 3)
    envs.reset()
    worker = envs.unwrapped.workers[1]
    wait, interrupts = worker.wait, [KeyboardInterrupt]

    def interrupted(*args):
        if interrupts:
            raise interrupts.pop()
        return wait(*args)

    monkeypatch.setattr(worker, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        envs.step(np.zeros(3, int))
    assert envs.step(np.zeros(3, int))[0][:, 0].tolist() == [1, 1, 1]
    interrupts.append(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        envs.step(np.zeros(3, int))
    assert envs.reset()[0][:, 0].tolist() == [0, 0, 0]
    assert envs.step(np.zeros(3, int))[0][:, 0].tolist() == [1, 1, 1]
    envs.close()


def test_close_ends_a_worker_that_does_not_answer(monkeypatch):
    monkeypatch.setattr("keras_dreamer.envs.process._GRACE", 0.2)
    envs = make_faulty("hang", 1)
    envs.reset()
    envs.unwrapped.workers[0].send("step", action=1)
    envs.close()
    assert not alive(envs)


def test_what_cannot_be_rendered_does_not_end_the_worker():
    envs = make_faulty("raise", 2)
    envs.reset()
    first, second = envs.unwrapped.render()
    assert isinstance(first, Exception) and isinstance(second, Exception)
    envs.step(np.array([0, 0]))
    envs.close()
