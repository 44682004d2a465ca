import types

import agents
import numpy as np
import pytest

from keras_dreamer.config import Config
from keras_dreamer.models.dreamer import Dreamer
from keras_dreamer_cli.presets import PRESETS
from keras_dreamer_cli.presets import resolve

NAMES = "preset size recipe ratio steps envs".split()


def settings(env, **given):
    return types.SimpleNamespace(env=env, **{**dict.fromkeys(NAMES), **given})


@pytest.mark.parametrize("recipe", ["paper", "head"])
def test_dmc_presets_are_the_published_protocols(recipe):
    found = resolve(settings("gym:A-v0", preset=f"dmc-proprio-{recipe}"))
    assert found.config == Config.dmc_proprio(recipe) and found.envs == 16


def test_the_environment_chooses_the_preset():
    found = resolve(settings("dmc:walker_walk"))
    assert (found.preset, found.config.size) == ("dmc-proprio-paper", "12m")
    assert resolve(settings("gym:CartPole-v1")).config.size == "small"


def test_the_command_line_goes_before_the_preset():
    found = resolve(
        settings(
            "gym:CartPole-v1",
            size="1m",
            recipe="head",
            ratio=32.0,
            steps=500,
            envs=1,
        )
    )
    config = found.config
    assert (config.size, config.recipe) == ("1m", "head")
    assert (config.train_ratio, config.env_steps, found.envs) == (32, 500, 1)
    assert config.lr == 1e-3  # Still the preset's.
    assert found.origins["train_ratio"] == "--ratio"
    assert found.origins["lr"] == "preset gym-small"


def test_presets_are_valid():
    for fields, envs, epoch in PRESETS.values():
        Config(**fields)
        assert envs > 0 and epoch > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_trains(name):
    # Its own networks, on few steps.
    few = {"batch_size": 2, "batch_length": 4, "imag_length": 2}
    config = Config(**{**PRESETS[name][0], **few})
    with agents.quick_backend():
        model = Dreamer(agents.numbers(5), agents.bounded(2), config)
        agents.quick_compile(model)
        batch = agents.random_batch(model, batch_size=2)
        logs = agents.train(model, batch, updates=3)
    assert int(model.optimizer.iterations) == 3
    for key, values in logs.items():
        assert np.isfinite(values).all(), key


def test_wrong_values_are_refused_by_the_config():
    with pytest.raises(ValueError, match="`train_ratio` must not be negative"):
        resolve(settings("gym:CartPole-v1", ratio=-1.0))
