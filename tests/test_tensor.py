"""Annotations with `Tensor` and `Shape` agree with the docstrings."""

import inspect
import re
import typing

import pytest

import keras_dreamer as kd
from keras_dreamer.tensor import Shape
from keras_dreamer.tensor import Tensor

# What begins the description of an argument, and the type that it names.
WORDS = {
    r"`None` or `\(.*": Tensor | None,
    r"`\((?!.*NumPy).*": Tensor,
    r"float32 (scalar )?tensor.*": Tensor,
    r"float\b.*": float,
    r"int\b.*": int,
}
LOSSES = filter(inspect.isfunction, vars(kd.losses).values())
LAYERS = [getattr(kd.layers, name) for name in kd.layers.__all__]
# The former takes a dict of shapes, types of the latter stand in a stub.
OTHERS = (kd.layers.Encoder, kd.layers.RSSM)


@pytest.mark.parametrize("loss", [*LOSSES])
def test_losses_take_what_their_docstrings_say(loss):
    hints = typing.get_type_hints(loss)
    arguments = re.findall(r"^ {8}(\w+): (.+)$", loss.__doc__, re.MULTILINE)
    documented = {
        name: annotation
        for name, text in arguments
        for words, annotation in WORDS.items()
        if re.fullmatch(words, text)
    }
    assert documented
    assert {name: hints[name] for name in documented} == documented


@pytest.mark.parametrize(
    "layer",
    [
        layer
        for layer in LAYERS
        if "build" in vars(layer) and layer not in OTHERS
    ],
)
def test_layers_are_built_with_shapes(layer):
    *shapes, returned = typing.get_type_hints(layer.build).values()
    assert set(shapes) == {Shape} and returned is type(None)
