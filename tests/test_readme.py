"""The README's training runs as printed, with smaller numbers."""

import functools
import pathlib
import re

import agents
import keras
import pytest
from scripted import tiny_config

import keras_dreamer as kd

README = (pathlib.Path(__file__).parents[1] / "README.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
# Text of the README, and what it becomes.
SMALLER = {
    # Keras imports TensorFlow, where it is installed, to save a file; after
    # dm_control that ends the process.
    "dmc:walker_walk": "gym:Pendulum-v1",
    "num_envs=16": "num_envs=2",
    'size="12m", recipe="paper"': 'recipe="paper", **SMALL',
    "batch_size=16, batch_length=64": "batch_size=3, batch_length=4",
    "ratio=512, total_steps=250_000": "ratio=6, total_steps=50",
    "epochs=125": "epochs=3",
    "steps_per_epoch=1000": "steps_per_epoch=10",
}


def block(text):
    """Returns the only block that has a text in it."""
    [found] = [code for code in BLOCKS if text in code]
    return found


@pytest.fixture
def quick(monkeypatch, tmp_path):
    jit = keras.backend.backend() == "jax"
    monkeypatch.setattr(
        kd.Dreamer,
        "compile",
        functools.partialmethod(kd.Dreamer.compile, jit_compile=jit),
    )
    monkeypatch.chdir(tmp_path)
    with agents.quick_backend():
        yield


@pytest.mark.slow
def test_training_then_acting_from_the_file(quick):
    code = block("model.fit(")
    for text, smaller in SMALLER.items():
        assert code.count(text) == 1, f"Adapt this test: {text}"
        code = code.replace(text, smaller)
    small = tiny_config().to_dict()
    del small["size"], small["recipe"]
    names = {"SMALL": small}
    exec(code, names)
    assert names["driver"].step == 50
    assert int(names["model"].optimizer.iterations) > 2
    observation, _ = names["envs"].reset()
    names["observation"] = observation[0]
    exec(block("kd.Policy.load"), {**names, "kd": kd})
