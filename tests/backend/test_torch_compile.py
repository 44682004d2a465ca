import warnings

import agents
import keras
import numpy as np
import pytest

torch = pytest.importorskip("torch")
if keras.backend.backend() != "torch":
    pytest.skip("another backend is active", allow_module_level=True)

from keras_dreamer.backend.torch import scan  # noqa: E402
from keras_dreamer.backend.torch_compile import BodyCompiler  # noqa: E402

pytestmark = pytest.mark.usefixtures("quick_backend")

X = torch.arange(4.0)


def add(carry, x):
    return carry + x, carry * x


def refuse(*args, **kwargs):
    raise RuntimeError("No C++ compiler.\nAnd more of it.")


# How `torch.compile` fails: where it is not supported, and at the first call.
FAILURES = {"at_once": refuse, "when_called": lambda body, **_: refuse}


@pytest.fixture(params=FAILURES)
def no_compiler(request, monkeypatch):
    monkeypatch.setattr(torch, "compile", FAILURES[request.param])


@pytest.fixture
def compiled(monkeypatch):
    """What was compiled, by a compiler that changes nothing."""
    bodies = []

    def fake(body, **_):
        bodies.append(body)
        return body

    monkeypatch.setattr(torch, "compile", fake)
    return bodies


def test_bodies_are_compiled_once_and_only_on_demand(compiled):
    zero = torch.zeros(())
    _, expected = scan(add, zero, X, 4)
    assert not compiled
    with BodyCompiler().active():
        _, outputs = scan(add, zero, X, 4)
    assert compiled == [add]
    np.testing.assert_array_equal(outputs, expected)
    scan(add, zero, X, 4)
    assert compiled == [add]


def test_the_first_step_is_not_compiled(compiled):
    with BodyCompiler().active():
        scan(add, torch.zeros(()), X[:1], 1)
    assert not compiled


def test_without_a_compiler_there_is_one_warning(no_compiler):
    compiler = BodyCompiler()
    zero = torch.zeros(())
    _, expected = scan(add, zero, X, 4)
    message = (
        r"`jit_compile=True` needs .*Received: No C\+\+ compiler\. .*Leave"
    )
    with pytest.warns(UserWarning, match=message) as caught, compiler.active():
        for _ in range(2):
            _, outputs = scan(add, zero, X, 4)
            np.testing.assert_array_equal(outputs, expected)
    assert len(caught) == 1


def test_errors_of_the_body_itself_are_raised(compiled):
    def fail(carry, x):
        if x == 2:
            raise ValueError("its own")
        return carry, x

    with (
        warnings.catch_warnings(),
        pytest.raises(ValueError, match="its own"),
        BodyCompiler().active(),
    ):
        warnings.simplefilter("error")
        scan(fail, torch.zeros(()), X, 4)


def losses(**kwargs):
    """Returns the losses of two updates."""
    model = agents.make_agent(
        agents.numbers(3), agents.bounded(2), **agents.SHALLOW
    )
    model.compile(**kwargs)
    logs = agents.train(model, agents.random_batch(model), updates=2)
    return logs["loss"]


def test_a_model_trains_without_a_compiler(no_compiler):
    with pytest.warns(UserWarning, match="needs a `torch.compile`") as caught:
        found = losses(jit_compile=True)
    messages = [str(warning.message) for warning in caught]
    assert sum("torch.compile" in message for message in messages) == 1
    np.testing.assert_array_equal(found, losses())


def test_a_model_compiles_all_loops_of_an_update(compiled):
    found = losses(jit_compile=True)
    # Observing and imagination, at each update.
    assert len(compiled) == 2 * 2
    np.testing.assert_array_equal(found, losses())
    assert len(compiled) == 2 * 2
