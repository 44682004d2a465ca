"""Episodes that are shorter, as long as and longer than a window."""

import agents
import keras
import numpy as np
import pytest
from scripted import CONTINUOUS
from scripted import Scripted
from scripted import expected_rows
from scripted import make_scripted
from scripted import tiny_config

import keras_dreamer as kd

LENGTHS = (1, 2, 5, 63, 64, 65)  # 206 rows with the resets.
CONFIG = tiny_config(batch_size=2, batch_length=64)
# XLA takes twice as long to compile an update as TensorFlow to trace it.
JIT = keras.backend.backend() == "jax"


@pytest.fixture(scope="module", autouse=True)
def quick_backend():
    with agents.quick_backend():
        yield


def test_episodes_of_any_length_train():
    envs = make_scripted(1, lengths=LENGTHS)
    model = kd.Dreamer(Scripted.observation_space, CONTINUOUS, CONFIG)
    model.compile(jit_compile=JIT)
    replay = kd.replay.Replay(CONFIG, envs)
    driver = kd.Driver(envs, model, replay)
    ratio = kd.callbacks.TrainRatio(driver, ratio=16, total_steps=230)
    history = model.fit(
        kd.replay.ReplayDataset(replay),
        epochs=10,
        steps_per_epoch=10,
        callbacks=[ratio],
        verbose=0,
    ).history
    # The first update after 64 + 128 rows, one more every 8 rows.
    assert history["updates"] == [1 + (230 - 192) // 8]
    assert all(np.isfinite(values).all() for values in history.values())
    assert [event.length for event in driver.episodes] == []  # Taken.
    assert history["episodes"] == [len(LENGTHS) + 3]
    assert history["episode/length"] == [
        np.mean([*LENGTHS, *LENGTHS[:3]]).item()
    ]
    expected = expected_rows(0, 230, LENGTHS)
    batch = replay.sample(2000)
    position = batch["step_id"]
    assert set(position.flat) == set(range(230))
    for name in ("is_first", "is_last", "is_terminal", "reward"):
        values = np.array([row[name] for row in expected])[position]
        trained = batch[name][:, 1:]  # The first row is only context.
        np.testing.assert_array_equal(trained, values[:, 1:], err_msg=name)
