"""What users call is annotated; mypy checks typing_example.py against it."""

import ast
import inspect
import pathlib

import pytest

import keras_dreamer as kd
from keras_dreamer import distributions
from keras_dreamer.layers import rssm
from keras_dreamer.models import dreamer

# The parts of the agent. Types of `RSSM` stand in a stub.
PARTS = [
    getattr(module, name)
    for module in (distributions, kd.layers, kd.losses)
    for name in module.__all__
    if name != "RSSM"
]
ANNOTATED = [
    kd.Config,
    kd.Driver,
    kd.Policy,
    kd.configure_runtime,
    kd.envs.ActionRepeat,
    kd.envs.Checked,
    kd.envs.Environments,
    kd.envs.FromDmControl,
    kd.envs.make,
    kd.evaluate,
    kd.inspection.compare_returns,
    kd.inspection.latent_usage,
    kd.inspection.open_loop,
    kd.optimizers.LaProp,
    kd.replay.Replay,
    kd.replay.ReplayDataset,
    kd.resume,
    kd.spaces.Leaf,
    kd.spaces.from_config,
    kd.spaces.from_model,
    kd.spaces.leaves,
    kd.spaces.to_config,
    kd.spaces.to_model,
    *PARTS,
    *(
        getattr(kd.callbacks, name)
        for name in kd.callbacks.__all__
        if name not in ("Progress", "Resumable")  # They take nothing.
    ),
]
STUBS = [
    pathlib.Path(module.__file__).with_suffix(".pyi")
    for module in (dreamer, rssm)
]


def unannotated(function):
    """Returns what `function` takes of no type, and "return" without one."""
    if isinstance(function, property):
        function = function.fget
    signature = inspect.signature(function)
    bare = [
        name
        for name, parameter in signature.parameters.items()
        if parameter.annotation is inspect.Parameter.empty and name != "self"
    ]
    if signature.return_annotation is inspect.Signature.empty:
        bare.append("return")
    return bare


def computes(member):
    """Tells whether `member` of a class is a method or a property."""
    return inspect.isroutine(member) or isinstance(member, property)


@pytest.mark.parametrize("public", ANNOTATED)
def test_arguments_are_annotated(public):
    function = public.__init__ if inspect.isclass(public) else public
    bare = unannotated(function)
    assert not bare, f"{public.__name__} has no types of {bare}."


@pytest.mark.parametrize("part", [*filter(inspect.isclass, PARTS)])
def test_methods_of_parts_are_annotated(part):
    bare = {
        name: unannotated(getattr(part, name))
        for owner in part.__mro__
        if owner.__module__.startswith("keras_dreamer.")
        for name in vars(owner)
        if not name.startswith("_") and computes(getattr(part, name))
    }
    assert not any(bare.values()), f"{part.__name__} lacks types: {bare}."


def functions(path):
    """Returns `{name: arguments with their defaults}` of the public methods."""
    [found] = [
        node
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef)
    ]
    return {
        node.name: [
            *(argument.arg for argument in node.args.args),
            *(ast.unparse(default) for default in node.args.defaults),
        ]
        for node in found.body
        if isinstance(node, ast.FunctionDef)
        and (node.name == "__init__" or not node.name.startswith("_"))
    }


@pytest.mark.parametrize("stub", STUBS, ids=lambda path: path.stem)
def test_stub_has_the_signatures_of_its_module(stub):
    assert functions(stub) == functions(stub.with_suffix(".py"))
