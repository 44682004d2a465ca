import dataclasses
import types

import pytest

from keras_dreamer.config import Config
from keras_dreamer_cli import config
from keras_dreamer_cli.presets import resolve


def command(**given):
    names = "preset size recipe ratio steps envs".split()
    return types.SimpleNamespace(
        env="dmc:walker_walk",
        seed=None,
        dtype=None,
        **{**dict.fromkeys(names), **given},
    )


def test_every_field_has_an_origin():
    found = config.origins(resolve(command()))
    for field in dataclasses.fields(Config):
        assert len(found[field.name].strip(" ()")) > 5, field.name


@pytest.mark.parametrize(
    "field, origin",
    [
        ("horizon", "1 / (1 - discount), in steps. configs.yaml:106"),
        ("eps", "(Optimizer (items 4.3 to 4.7), configs.yaml:87 and"),
        ("deter", "size 1m (item 2.1)"),
        ("imag_start", "recipe paper (danijar/dreamerv3 at 2411f7d"),
        ("recipe", "preset dmc-proprio-paper"),
        ("size", "--size"),
    ],
)
def test_origins(field, origin):
    found = config.origins(resolve(command(size="1m")))
    assert found[field].startswith(origin)


def test_prints_every_value(capsys):
    config.run(command(ratio=64.0))
    rows = {
        line.split()[0]: line for line in capsys.readouterr().out.splitlines()
    }
    assert {f.name for f in dataclasses.fields(Config)} <= rows.keys()
    assert "64.0" in rows["train_ratio"] and "--ratio" in rows["train_ratio"]
    assert "rep=0.1" in rows["loss_scales"]
    assert rows["seed"].split()[1] == "0"
    assert rows["dtype"].split()[1] == "float32"
