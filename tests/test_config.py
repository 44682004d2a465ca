import copy
import dataclasses
import json
import pickle

import pytest

from keras_dreamer.config import LOSS_SCALES
from keras_dreamer.config import RECIPES
from keras_dreamer.config import SIZES
from keras_dreamer.config import Config

# Item 2.1: model dimension of each published size.
DIMENSIONS = {
    "1m": 64,
    "12m": 256,
    "25m": 384,
    "50m": 512,
    "100m": 768,
    "200m": 1024,
    "400m": 1536,
}


@pytest.mark.parametrize("size", DIMENSIONS)
def test_published_sizes_follow_the_model_dimension(size):
    config, d = Config(size=size), DIMENSIONS[size]
    assert (config.deter, config.hidden, config.units) == (8 * d, d, d)
    assert (config.stoch, config.classes, config.blocks) == (32, d // 16, 8)
    # Feature width of heads, actor and critic: 8d + 32 * d / 16 = 10d.
    assert config.deter + config.stoch * config.classes == 10 * d


def test_every_size_has_the_same_fields():
    assert {tuple(sorted(fields)) for fields in SIZES.values()} == {
        ("classes", "deter", "hidden", "stoch", "units")
    }


def test_every_recipe_has_the_same_fields():
    assert sorted(RECIPES["paper"]) == sorted(RECIPES["head"])


def test_defaults_of_the_reference():
    config = Config()
    expected = {
        "size": "12m",
        "recipe": "paper",
        "imglayers": 2,
        "obslayers": 1,
        "encoder_layers": 3,
        "decoder_layers": 3,
        "reward_layers": 1,
        "continue_layers": 1,
        "policy_layers": 3,
        "value_layers": 3,
        "unimix": 0.01,
        "free_nats": 1.0,
        "bins": 255,
        "policy_outscale": 0.01,
        "minstd": 0.1,
        "maxstd": 1.0,
        "imag_length": 15,
        "horizon": 333.0,
        "contdisc": True,
        "lam": 0.95,
        "repval_lam": 0.95,
        "actent": 3e-4,
        "slowreg": 1.0,
        "slow_rate": 0.02,
        "retnorm_rate": 0.01,
        "retnorm_limit": 1.0,
        "retnorm_perclo": 5.0,
        "retnorm_perchi": 95.0,
        "reward_grad": True,
        "repval_grad": True,
        "lr": 4e-5,
        "warmup": 1000,
        "agc": 0.3,
        "pmin": 1e-3,
        "beta1": 0.9,
        "beta2": 0.999,
        "eps": 1e-20,
        "batch_size": 16,
        "batch_length": 64,
        "replay_context": 1,
    }
    assert {name: getattr(config, name) for name in expected} == expected


def test_loss_scales_of_the_reference():
    # Item 4.1.
    assert dict(Config().loss_scales) == {
        "rec": 1.0,
        "rew": 1.0,
        "con": 1.0,
        "dyn": 1.0,
        "rep": 0.1,
        "policy": 1.0,
        "value": 1.0,
        "repval": 0.3,
    }


def test_the_recipes_differ_as_published():
    paper, head = Config(recipe="paper"), Config(recipe="head")
    assert (paper.imag_start, head.imag_start) == ("data", "model")
    assert (paper.slow_copy, head.slow_copy) == (True, False)
    assert (paper.decoder_outscale, head.decoder_outscale) == (0.1, 1.0)
    assert (paper.actor_unimix, head.actor_unimix) == (0.01, 0.0)
    differing = {
        field.name
        for field in dataclasses.fields(Config)
        if getattr(paper, field.name) != getattr(head, field.name)
    }
    assert differing == {"recipe", *RECIPES["paper"]}


def test_dmc_proprio_protocol():
    # Item 7.5.
    paper, head = Config.dmc_proprio(), Config.dmc_proprio("head")
    assert (paper.size, paper.train_ratio) == ("12m", 512)
    assert (paper.action_repeat, paper.env_steps) == (2, 500_000)
    assert (head.size, head.train_ratio) == ("1m", 1024)
    assert (head.action_repeat, head.env_steps) == (1, 1_100_000)
    assert Config.dmc_proprio(size="1m", lam=0.9).lam == 0.9


def test_discount():
    # 1 - 1 / 333 = 0.996997
    assert Config().discount == pytest.approx(0.996997, abs=1e-7)
    assert Config(horizon=1).discount == 0.0


def test_overrides_win_over_size_and_recipe():
    config = Config(size="1m", recipe="head", units=96, imag_start="data")
    assert (config.units, config.hidden) == (96, 64)
    assert config.imag_start == "data"


def test_loss_scales_name_only_what_they_change():
    config = Config(loss_scales={"rep": 0.5})
    assert dict(config.loss_scales) == {**LOSS_SCALES, "rep": 0.5}


def test_is_frozen():
    config = Config()
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.lr = 1.0
    with pytest.raises(TypeError):
        config.loss_scales["rep"] = 1.0


def test_replace_keeps_everything_else():
    config = Config(size="1m", units=96, loss_scales={"rep": 0.5})
    changed = config.replace(batch_size=8)
    assert changed.batch_size == 8
    assert changed.to_dict() == {**config.to_dict(), "batch_size": 8}
    assert config.batch_size == 16


def test_replace_with_a_size_or_recipe_brings_its_fields():
    config = Config(size="small", lam=0.9)
    assert config.replace(size="12m") == Config(size="12m", lam=0.9)
    head = config.replace(recipe="head")
    assert head == Config(size="small", recipe="head", lam=0.9)
    assert config.replace(size="1m", units=96).units == 96


def test_replace_adds_to_the_loss_scales():
    config = Config(loss_scales={"rep": 0.5}).replace(loss_scales={"dyn": 2.0})
    assert config.loss_scales["rep"] == 0.5
    assert config.loss_scales["dyn"] == 2.0


def test_replace_checks():
    with pytest.raises(ValueError, match="`lam` must lie in"):
        Config().replace(lam=2.0)


def test_round_trip_through_json():
    config = Config(size="25m", recipe="head", lr=1e-3, loss_scales={"con": 2})
    text = json.dumps(config.to_dict())
    assert Config(**json.loads(text)) == config


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_are_equal(copied):
    # Processes and Keras copy configurations.
    config = Config(size="1m", units=96, loss_scales={"rep": 0.5})
    assert copied(config) == config
