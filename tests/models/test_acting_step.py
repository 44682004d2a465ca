import agents
import gymnasium
import numpy as np
import pytest
from helpers import to_numpy
from keras import ops

from keras_dreamer import spaces as kd_spaces
from keras_dreamer.models import acting_step

pytestmark = pytest.mark.usefixtures("quick_backend")
spaces = gymnasium.spaces


@pytest.fixture(scope="module")
def model():
    return agents.make_agent(**agents.SHALLOW)


def test_inputs_by_name(model):
    specs = acting_step.input_specs(model, deterministic=False)
    assert {k: (v.shape, v.dtype) for k, v in specs.items()} == {
        "is_first": ((None,), "bool"),
        "normal/action/move": ((None, 2), "float32"),
        "observation/flags": ((None, 2), "int32"),
        "observation/mode": ((None,), "int32"),
        "observation/position": ((None, 3), "float32"),
        "state/action/fire": ((None,), "int32"),
        "state/action/gear": ((None, 2), "int32"),
        "state/action/move": ((None, 2), "float32"),
        "state/deter": ((None, 64), "float32"),
        "state/stoch": ((None, 4), "int32"),
        "uniform/action/fire": ((None,), "float32"),
        "uniform/action/gear": ((None, 2), "float32"),
        "uniform/posterior": ((None, 4), "float32"),
    }
    modes = acting_step.input_specs(model, deterministic=True)
    noise = ("normal/", "uniform/")
    assert modes.keys() == {k for k in specs if not k.startswith(noise)}


def test_outputs_come_in_the_order_of_their_names(model):
    step = acting_step.ActingStep(model, deterministic=True)
    inputs = {
        name: ops.zeros((3, *spec.shape[1:]), spec.dtype)
        for name, spec in acting_step.input_specs(model, True).items()
    }
    outputs = step(inputs)
    assert list(outputs) == acting_step.output_names(model)
    assert tuple(outputs["next_state/deter"].shape) == (3, 64)


def test_only_what_acts_is_held(model):
    step = acting_step.ActingStep(model, deterministic=True)
    acting = {w.path for w in model.networks.acting_weights()}
    held = {w.path for w in step.weights}
    assert held < acting
    assert acting - held == {
        w.path
        for part in (
            model.networks.dyn.prior_mlp,
            model.networks.dyn.prior_logits,
        )
        for w in part.weights
    }


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-2, 6, (3,)),
        spaces.Box(0, 800, (3,), np.float64),
        spaces.Box(-np.inf, np.inf, (3,)),
        spaces.Box(0.5, np.inf, (3,)),
        spaces.Box(-np.inf, np.array([0.2, 3, -3], "float32")),
        spaces.Box(0, 10, (3,), np.int64),
        spaces.MultiDiscrete([4, 4, 4], start=[5, -1, 0]),
    ],
    ids=str,
)
def test_actions_are_those_of_the_environment(space):
    rng = np.random.default_rng(0)
    if kd_spaces.is_discrete(space):
        values = rng.integers(4, size=(50, 3)).astype("int32")
    else:
        values = rng.normal(size=(50, 3)).astype("float32")
    expected = kd_spaces.from_model(space, {"action": values}, "action")
    found = acting_step._to_environment(space, ops.convert_to_tensor(values))
    np.testing.assert_allclose(to_numpy(found), expected, rtol=1e-6, atol=1e-6)
