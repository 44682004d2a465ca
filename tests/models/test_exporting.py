import importlib
import pathlib
import subprocess
import sys

import agents
import gymnasium
import keras
import numpy as np
import pytest

import keras_dreamer as kd
from keras_dreamer.models import exporting
from keras_dreamer.models.noise import NumberedNoise
from keras_dreamer.models.noise import acting_noise

BACKEND = keras.backend.backend()
TESTS = pathlib.Path(__file__).parents[1]
spaces = gymnasium.spaces
FORMAT = "onnx" if BACKEND == "torch" else "tf_saved_model"
NEEDED = ("onnx", "onnxruntime") if BACKEND == "torch" else ("tensorflow",)

OBSERVATION = spaces.Dict(
    position=agents.numbers(3),
    wide=spaces.Box(-9, 9, (2,), np.float64),
    arm=spaces.Dict(hand=spaces.Discrete(4, start=-1)),
    flags=spaces.MultiDiscrete([3, 2]),
)
ACTION = spaces.Dict(
    move=spaces.Box(-2, 6, (2,)),
    free=agents.numbers(1),
    above=spaces.Box(0.5, np.inf, (1,)),
    count=spaces.Box(0, 10, (2,), np.int64),
    fire=spaces.Discrete(3, start=5),
    gear=spaces.Tuple([spaces.MultiDiscrete([3, 2], start=[1, -1])]),
)
# Two environments, with resets at other times.
STARTS = np.array([[1, 1], [0, 0], [0, 1], [0, 0], [1, 0]], bool)


def flat(space, nest, name):
    return {
        f"{name}/{key}": np.asarray(value)
        for key, _, value in kd.spaces.entries(space, nest, name)
    }


def observe(model, step):
    space = gymnasium.vector.utils.batch_space(model.observation_space, 2)
    space.seed(step)
    observation = space.sample()
    observation["position"][0] = -np.inf if step == 3 else 0.5
    return observation


def noise_of_step(model, step):
    """Returns the noise that `act` draws as the number `step`."""
    numbered = NumberedNoise(model.seed)
    numbered.drawn = step
    latents, actions = acting_noise(
        model.config,
        model.action_leaves,
        2,
        numbered.next(),
        deterministic=False,
    )
    noise = {"uniform/posterior": latents}
    for key, value in actions.items():
        kind = "uniform" if model.action_leaves[key].discrete else "normal"
        noise[f"{kind}/action/{key}"] = value
    return noise


def act(model, deterministic):
    """Returns the inputs and the expected outputs of all steps."""
    inputs, outputs, state = {}, [], None
    for step, is_first in enumerate(STARTS):
        observation = observe(model, step)
        given = {
            name: value.astype(
                "int32" if value.dtype.kind == "i" else "float32"
            )
            for name, value in flat(
                model.observation_space, observation, "observation"
            ).items()
        }
        given |= {"is_first": is_first, **noise_of_step(model, step)}
        inputs |= {f"{step}/{name}": value for name, value in given.items()}
        model.action_noise.drawn = step
        action, state = model.act(observation, state, is_first, deterministic)
        outputs.append(
            {
                **flat(model.action_space, action, "action"),
                "next_state/deter": state["deter"],
                "next_state/stoch": state["stoch"],
                **{
                    f"next_state/action/{key}": value
                    for key, value in state["action"].items()
                },
            }
        )
    return inputs, outputs


@pytest.fixture(scope="module")
def model():
    return agents.make_random_agent(OBSERVATION, ACTION, **agents.SHALLOW)


@pytest.fixture
def runtime():
    for package in NEEDED:
        pytest.importorskip(package)


def test_acts_as_the_agent_does(model, runtime, tmp_path):
    paths = {
        mode: str(tmp_path / f"mode{mode}") + ".onnx" * (FORMAT == "onnx")
        for mode in (True, False)
    }
    expected = {}
    for mode, path in paths.items():
        model.export(path, FORMAT, verbose=False, deterministic=mode)
        inputs, expected[mode] = act(model, mode)
    np.savez(tmp_path / "steps.npz", **inputs)
    files = [tmp_path / "steps.npz", tmp_path / "outputs.npz", *paths.values()]
    script = [sys.executable, str(TESTS / "exported.py"), *map(str, files)]
    subprocess.run(script, check=True, cwd=tmp_path)
    with np.load(tmp_path / "outputs.npz") as file:
        found = dict(file)
    for number, mode in enumerate(paths):
        for step, values in enumerate(expected[mode]):
            for name, value in values.items():
                np.testing.assert_allclose(
                    found.pop(f"{number}/{step}/{name}"),
                    value,
                    rtol=1e-5,
                    atol=1e-5,
                    err_msg=f"{mode} {step} {name}",
                )
    assert not found
    fired = {
        int(v) for values in expected[False] for v in values["action/fire"]
    }
    assert len(fired) > 1


def test_what_is_exported_is_a_constant_copy_in_float32():
    model = agents.make_agent(dtype="mixed_bfloat16", **agents.SHALLOW)
    copy = exporting._frozen(model)
    assert copy.compute_dtype == "float32"
    assert not copy.trainable_weights and model.trainable_weights
    expected = model.official_weights()
    for name, value in copy.official_weights().items():
        np.testing.assert_array_equal(value, expected[name])


def test_other_formats_are_refused(model, tmp_path):
    with pytest.raises(
        ValueError, match=r"\['tf_saved_model', 'onnx'\].*litert"
    ):
        model.export(tmp_path / "agent", "litert")


def test_backends_that_cannot_write_name_those_that_can(model, tmp_path):
    other = "tf_saved_model" if BACKEND == "torch" else "onnx"
    with pytest.raises(
        ValueError,
        match=f"KERAS_BACKEND={BACKEND}.*keras.*under KERAS_BACKEND=",
    ):
        model.export(tmp_path / "agent", other)


def test_missing_packages_are_named_with_their_extra(
    model, tmp_path, monkeypatch
):
    def missing(name):
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(
        ImportError, match=r"keras-dreamer\[(onnx|tensorflow)\]"
    ):
        model.export(tmp_path / "agent", FORMAT)
