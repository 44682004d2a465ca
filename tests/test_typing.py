"""What users call is annotated; mypy checks typing_example.py against it."""

import ast
import inspect
import pathlib

import pytest

import keras_dreamer as kd
from keras_dreamer.models import dreamer

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
    *(
        getattr(kd.callbacks, name)
        for name in kd.callbacks.__all__
        if name not in ("Progress", "Resumable")  # They take nothing.
    ),
]
STUB = pathlib.Path(dreamer.__file__).with_suffix(".pyi")


@pytest.mark.parametrize("public", ANNOTATED)
def test_arguments_are_annotated(public):
    function = public.__init__ if inspect.isclass(public) else public
    signature = inspect.signature(function)
    assert signature.return_annotation is not inspect.Signature.empty
    bare = [
        name
        for name, parameter in signature.parameters.items()
        if parameter.annotation is inspect.Parameter.empty and name != "self"
    ]
    assert not bare, f"{public.__name__} takes {bare} of no type."


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


def test_stub_of_dreamer_has_its_signatures():
    assert functions(STUB) == functions(STUB.with_suffix(".py"))
