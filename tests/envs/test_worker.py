import dataclasses
import os
import signal

import pytest
from faulty import faulty

from keras_dreamer.envs.worker import Worker


@dataclasses.dataclass(frozen=True)
class Constructor:
    build: object
    index: int = 3
    seed: int = 5

    def __call__(self):
        return self.build()


@pytest.fixture
def worker():
    worker = Worker(_constructor())
    assert worker.take(60.0)[0].shape == (2,)
    yield worker
    worker.end()


def _constructor(fault="hang"):
    Constructor.__module__ = "__main__"  # Travels by value.
    return Constructor(faulty(fault))


def test_answers_come_in_turn(worker):
    worker.send("reset", seed=1)
    assert worker.pending
    assert worker.wait(60.0) is worker.wait(60.0)
    observation, info = worker.take(60.0)
    assert observation.tolist() == [0, 1] and info == {}
    assert not worker.pending
    worker.send("step", action=0)
    assert worker.take(60.0)[0].tolist() == [1, 1]


def test_nothing_is_sent_while_an_answer_is_pending(worker):
    worker.send("reset", seed=1)
    worker.send("reset", seed=2)
    assert worker.take(60.0)[0].tolist() == [0, 1]
    worker.send("step", action=0)
    assert worker.take(60.0)[0].tolist() == [1, 1]


def test_errors_are_values(worker):
    worker.send("step", action=0)  # Not reset yet.
    error = worker.take(60.0)
    assert isinstance(error, RuntimeError)
    assert "Environment 3 raised AttributeError in its process" in str(error)
    worker.send("reset", seed=1)
    worker.take(60.0)
    worker.send("step", action=1)
    error = worker.take(0.2)
    assert isinstance(error, TimeoutError) and "environment 3" in str(error)


def test_death_is_told_with_its_code(worker):
    os.kill(worker.process.pid, signal.SIGKILL)
    worker.send("reset")
    error = worker.take(60.0)
    assert isinstance(error, RuntimeError)
    assert "environment 3 died with exit code -9" in str(error)


def test_ctrl_c_is_left_to_the_main_process(worker):
    os.kill(worker.process.pid, signal.SIGINT)
    worker.send("reset", seed=1)
    assert worker.take(60.0)[0].tolist() == [0, 1]
