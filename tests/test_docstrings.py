"""Runs the examples of the docstrings as printed."""

import doctest
import importlib
import pkgutil

import gymnasium
import keras
import pytest

import keras_dreamer

NAMES = {
    "gymnasium": gymnasium,
    "keras": keras,
    "keras_dreamer": keras_dreamer,
}


def modules_of(package):
    package = importlib.import_module(f"keras_dreamer.{package}")
    return [
        f"{package.__name__}.{module.name}"
        for module in pkgutil.iter_modules(package.__path__)
    ]


MODULES = [
    "keras_dreamer.config",
    "keras_dreamer.policy",
    "keras_dreamer.symlog",
    *modules_of("distributions"),
    *modules_of("layers"),
    *modules_of("losses"),
]


@pytest.mark.parametrize("module", MODULES)
def test_examples(module):
    module = importlib.import_module(module)
    runner = doctest.DocTestRunner()
    report = []
    for test in doctest.DocTestFinder().find(module, extraglobs=NAMES):
        runner.run(test, out=report.append)
    assert not runner.failures, "".join(report)


@pytest.mark.parametrize(
    "name", sorted({*keras_dreamer.layers.__all__, "losses.TwoHot"})
)
def test_public_classes_have_an_example(name):
    owner, _, name = name.rpartition(".")
    owner = getattr(keras_dreamer, owner or "layers")
    assert ">>>" in getattr(owner, name).__doc__
