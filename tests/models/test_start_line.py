import os
import types

import agents
import gymnasium
import keras
import numpy as np
import pytest
from scripted import make_scripted
from scripted import tiny_config

import keras_dreamer as kd
from keras_dreamer.models import start_line as module
from keras_dreamer.models.start_line import start_line

BACKEND = keras.backend.backend()
SPACE = gymnasium.spaces.Discrete(2)


@pytest.fixture
def on_cpu(monkeypatch):
    monkeypatch.setattr(module.backend, "device", lambda: "cpu")
    monkeypatch.setattr(os, "cpu_count", lambda: 2)


def make_dataset(**kwargs):
    envs = make_scripted(2)
    replay = kd.replay.Replay(tiny_config(), envs, **kwargs)
    return envs, kd.replay.ReplayDataset(replay)


def test_names_everything(on_cpu):
    model = kd.Dreamer(SPACE, SPACE, tiny_config(), dtype="mixed_bfloat16")
    nets = model.networks
    trained = sum(np.size(w) for w in model.get_weights()) - 3
    trained -= sum(np.size(w) for w in nets.slowval.get_weights())
    _, dataset = make_dataset(capacity=1000)
    nbytes = dataset.replay.predicted_nbytes(1000)
    assert start_line(model, dataset) == (
        f"{BACKEND} on cpu (2 cores) | mixed_bfloat16 | {trained:,} parameters"
        f" | replay up to {nbytes / 1000:.3g} kB at 1,000 steps"
    )


@pytest.fixture(scope="module")
def model():
    return kd.Dreamer(
        make_scripted(1).single_observation_space,
        make_scripted(1).single_action_space,
        tiny_config(),
    )


@pytest.mark.parametrize(
    "total_steps,expected", [(None, "5,000"), (70, "70"), (9000, "5,000")]
)
def test_a_shorter_run_needs_less(model, total_steps, expected):
    envs, dataset = make_dataset(capacity=5000)
    driver = kd.Driver(envs, model, dataset.replay)
    ratio = kd.callbacks.TrainRatio(driver, ratio=6, total_steps=total_steps)
    line = start_line(model, dataset, [keras.callbacks.History(), ratio])
    assert line.endswith(f"B at {expected} steps")


def test_other_datasets_promise_nothing(model):
    batches = agents.FixedBatches({"is_first": np.zeros((2, 3))})
    for dataset in (batches, [1, 2]):
        assert start_line(model, dataset).endswith(" parameters")


def test_names_the_device_and_how_many(monkeypatch, model):
    monkeypatch.setattr(module.backend, "device", lambda: "cuda:0 Tesla T4")
    assert start_line(model, None).startswith(f"{BACKEND} on cuda:0 Tesla T4 |")
    mesh = types.SimpleNamespace(devices=np.arange(8))
    monkeypatch.setattr(
        keras.distribution,
        "distribution",
        lambda: types.SimpleNamespace(device_mesh=mesh),
    )
    assert "on 8 x cuda:0 Tesla T4 |" in start_line(model, None)


@pytest.mark.parametrize(
    "nbytes,expected",
    [
        (999, "999 bytes"),
        (1000, "1 kB"),
        (45_600_000, "45.6 MB"),
        (9_320_000_000, "9.3 GB"),
        (20_755_000_000_000, "20755.0 GB"),
    ],
)
def test_units(nbytes, expected):
    assert module._with_unit(nbytes) == expected
