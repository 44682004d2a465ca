"""What a Keras 3 package promises: one backend at a time, files for all.

`portable.py` makes the files and describes the run that they come from.
"""

import os
import subprocess
import sys

import agents
import keras
import numpy as np
import portable
import pytest

BACKENDS = ("jax", "tensorflow", "torch")
OTHERS = [name for name in BACKENDS if name != portable.BACKEND]
WRITERS = [(b, p) for b in BACKENDS for p in portable.POLICIES]


@pytest.fixture(scope="module", autouse=True)
def quick_backend():
    with agents.quick_backend():
        yield


def test_only_the_backend_in_use_is_imported():
    # `None` in `sys.modules` makes an import fail.
    code = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({OTHERS}))\n"
        "import gymnasium\n"
        "import keras_dreamer as kd\n"
        "space = gymnasium.spaces.Discrete(3)\n"
        f"config = kd.Config(size='small', **{portable.SIZES})\n"
        "model = kd.Dreamer(space, space, config)\n"
        "model.compile()\n"
        "print(model.act([0, 2])[0].shape)\n"
    )
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code],
        env={**os.environ, "KERAS_BACKEND": portable.BACKEND},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "(2,)"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The folder and the results of every writer."""
    found = {}
    for writer in WRITERS:
        folder = tmp_path_factory.mktemp("-".join(writer))
        found[writer] = folder, portable.unpack(*writer, folder)
    return found


@pytest.fixture(scope="module")
def own_run():
    """The run of the files, once more, on this backend."""
    model = portable.make_agent("float32")
    replay = portable.make_replay(model)
    agents.quick_compile(model, updates=20)
    losses = portable.run(model, replay)
    results = {"losses": losses, **portable.state_of(model)}
    rows = portable.contents(replay)
    return model, rows, {**results, **portable.go_on(model, replay)}


@pytest.fixture(scope="module")
def readers(own_run, files):
    """An agent of each policy that loads what others have written."""
    folder, _ = files[OTHERS[0], "mixed_bfloat16"]
    loaded = keras.saving.load_model(folder / "agent.keras")
    loaded.jit_compile = loaded.jit_compile and portable.BACKEND == "jax"
    return {"float32": own_run[0], "mixed_bfloat16": loaded}


# Equality.


@pytest.mark.parametrize("writer", BACKENDS)
def test_the_same_seed_fills_the_replay_with_the_same_rows(
    own_run, files, writer
):
    # Resets and actions, order, rewards, latents before and after updates.
    _, rows, _ = own_run
    with np.load(files[writer, "float32"][0] / "replay.npz") as expected:
        assert set(rows) == set(expected)
        for name in set(rows) - {"meta"}:
            close = 1e-5 if rows[name].dtype.kind == "f" else 0
            np.testing.assert_allclose(
                rows[name], expected[name], close, close, err_msg=name
            )
        assert expected["row/is_first"].sum() > 2


@pytest.mark.parametrize("writer", BACKENDS)
def test_the_same_seed_trains_and_acts_in_the_same_way(own_run, files, writer):
    _, _, results = own_run
    _, expected = files[writer, "float32"]
    assert results.keys() == expected.keys()
    for name, value in expected.items():
        if name == "optimizer":  # Here small gradients count like large ones.
            assert agents.relative_error(results[name], value) < 1e-4
            continue
        np.testing.assert_allclose(
            results[name], value, 1e-5, 1e-5, err_msg=name
        )


# Files.


@pytest.mark.parametrize("writer", WRITERS, ids="-".join)
def test_a_keras_file_brings_everything(files, writer):
    folder, results = files[writer]
    model = keras.saving.load_model(folder / "agent.keras")
    assert model.dtype_policy.name == writer[1]
    assert model.jit_compile is (portable.BACKEND != "torch")
    for name, value in portable.state_of(model).items():
        np.testing.assert_array_equal(value, results[name], err_msg=name)


@pytest.mark.parametrize("policy", portable.POLICIES)
@pytest.mark.parametrize("writer", WRITERS, ids="-".join)
def test_files_of_others_act_and_train_on(files, readers, writer, policy):
    folder, results = files[writer]
    model = readers[policy]
    model.load_weights(folder / "agent.weights.h5")
    for name, value in portable.state_of(model).items():
        np.testing.assert_array_equal(value, results[name], err_msg=name)
    replay = portable.make_replay(model)
    replay.load(folder / "replay.npz")
    found = portable.go_on(model, replay)
    same = writer[1] == policy == "float32"
    close = 1e-5 if same else 0.05
    for name, value in found.items():
        np.testing.assert_allclose(
            value, results[name], close, close, err_msg=name
        )
    assert int(model.optimizer.iterations) == portable.UPDATES + 1
    assert {v.dtype for v in model.trainable_variables} == {"float32"}
