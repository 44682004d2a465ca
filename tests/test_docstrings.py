"""Runs the examples of the docstrings as printed."""

import doctest
import importlib
import pathlib

import gymnasium
import keras
import numpy as np
import pytest

import keras_dreamer

ROOT = pathlib.Path(keras_dreamer.__file__).parents[1]
ELSEWHERE = {
    "keras_dreamer.envs.dm_control": "tests/envs/test_dm_control.py",
    # These take an agent, experience or a dataset.
    "keras_dreamer.evaluation": "tests/test_evaluation.py",
    "keras_dreamer.inspection.latents": "tests/inspection/test_latents.py",
    "keras_dreamer.inspection.open_loop": "tests/inspection/test_open_loop.py",
    "keras_dreamer.inspection.returns": "tests/inspection/test_returns.py",
    "keras_dreamer.replay.minari_data": "tests/replay/test_minari_data.py",
    "keras_dreamer.replay.saving": "needs a file, and trains for long",
    "keras_dreamer.runtime": "would set this process up",
}
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in ROOT.glob("keras_dreamer/**/*.py")
    if ">>> " in path.read_text()
)


@pytest.fixture(scope="module")
def names():
    """Returns what the examples take as given."""
    envs = keras_dreamer.envs.make("gym:Pendulum-v1", num_envs=2)
    return {
        "env": gymnasium.make("Pendulum-v1"),
        "envs": envs,
        "gymnasium": gymnasium,
        "keras": keras,
        "keras_dreamer": keras_dreamer,
        "np": np,
        "replay": keras_dreamer.replay.Replay(
            keras_dreamer.Config(size="small"), envs
        ),
    }


@pytest.mark.parametrize("module", sorted(set(MODULES) - set(ELSEWHERE)))
def test_examples(module, names):
    module = importlib.import_module(module)
    runner = doctest.DocTestRunner()
    report = []
    for test in doctest.DocTestFinder().find(module, extraglobs=names):
        runner.run(test, out=report.append)
    assert runner.tries and not runner.failures, "".join(report)


def test_examples_are_found():
    assert set(ELSEWHERE) < set(MODULES)


@pytest.mark.parametrize(
    "name", sorted({*keras_dreamer.layers.__all__, "losses.TwoHot"})
)
def test_public_classes_have_an_example(name):
    owner, _, name = name.rpartition(".")
    owner = getattr(keras_dreamer, owner or "layers")
    assert ">>>" in getattr(owner, name).__doc__
