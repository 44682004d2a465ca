"""What a Keras 3 package promises: one backend at a time, files for all."""

import os
import pathlib
import subprocess
import sys

import gymnasium
import keras
import numpy as np
from helpers import to_numpy

import keras_dreamer as kd

GOLDEN = pathlib.Path(__file__).parent / "golden"
BACKENDS = {"jax", "tensorflow", "torch"}


def test_only_the_backend_in_use_is_imported():
    others = BACKENDS - {keras.backend.backend()}
    # `None` in `sys.modules` makes an import fail.
    code = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({sorted(others)}))\n"
        "import gymnasium\n"
        "import keras_dreamer as kd\n"
        "space = gymnasium.spaces.Discrete(3)\n"
        "config = kd.Config(deter=16, hidden=8, units=8, stoch=2, classes=4)\n"
        "model = kd.Dreamer(space, space, config)\n"
        "model.compile()\n"
        "print(model.act([0, 2])[0].shape)\n"
    )
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code],
        env={**os.environ, "KERAS_BACKEND": keras.backend.backend()},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "(2,)"


def make_portable():
    """Makes the agent of `portable.keras` and trains it twice."""
    observation = gymnasium.spaces.Dict(
        x=gymnasium.spaces.Box(-1, 1, (3,)), mode=gymnasium.spaces.Discrete(4)
    )
    action = gymnasium.spaces.Box(-2.0, 2.0, (2,))
    config = kd.Config(
        deter=16,
        hidden=8,
        units=8,
        stoch=2,
        classes=4,
        bins=15,
        imag_length=3,
        batch_size=2,
        batch_length=3,
        lr=1e-4,  # Rounding noise becomes steps of this size.
        warmup=0,
    )
    model = kd.Dreamer(observation, action, config, seed=3)
    model.compile(run_eagerly=True)
    return model


def train_twice(model):
    rng = np.random.default_rng(0)
    lead = (2, 4)
    batch = {
        "observation": {
            "x": rng.uniform(-1, 1, (*lead, 3)).astype("float32"),
            "mode": rng.integers(4, size=lead, dtype="int32"),
        },
        "action": {"action": rng.uniform(-1, 1, (*lead, 2)).astype("float32")},
        "reward": rng.uniform(-1, 1, lead).astype("float32"),
        **{
            flag: np.zeros(lead, bool)
            for flag in ("is_first", "is_last", "is_terminal")
        },
        "context": {
            "deter": np.zeros((2, 16), "float32"),
            "stoch": np.zeros((2, 2), "int32"),
        },
    }

    class Stored(kd.replay.ReplayDataset):
        def draw(self):
            return dict(batch)

    model.sample_noise = lambda b, t: model.mode_noise(b, t, normal=0.5)
    dataset = Stored(None, batch_size=2, batch_length=3, steps_per_epoch=2)
    return model.fit(dataset, verbose=0).history["loss"][0]


def act(model):
    observation = {
        "x": np.array([[0.1, -0.5, 0.9], [0.0, 1.0, -1.0]], "float32"),
        "mode": np.array([3, 0]),
    }
    return model.act(observation, deterministic=True)[0]


def test_a_file_of_another_backend_acts_and_trains_on():
    # Saved on JAX after two updates, with what it did next.
    model = keras.saving.load_model(GOLDEN / "portable.keras")
    expected = np.load(GOLDEN / "portable.npz")
    np.testing.assert_allclose(act(model), expected["before"], atol=1e-5)
    assert int(to_numpy(model.optimizer.iterations)) == 2
    loss = train_twice(model)
    np.testing.assert_allclose(loss, expected["loss"], rtol=1e-4)
    np.testing.assert_allclose(act(model), expected["after"], atol=1e-3)


def test_a_file_loads_under_another_dtype():
    model = keras.saving.load_model(GOLDEN / "portable.keras")
    keras.config.set_dtype_policy("mixed_bfloat16")
    half = make_portable()
    half.load_official_weights(model.official_weights())
    np.testing.assert_allclose(act(half), act(model), atol=0.05)


if __name__ == "__main__":
    # Makes the files: KERAS_BACKEND=jax PYTHONPATH=.:tests python <this file>
    agent = make_portable()
    train_twice(agent)
    agent.save(GOLDEN / "portable.keras")
    before = act(agent)
    loss = train_twice(agent)
    np.savez(
        GOLDEN / "portable.npz", before=before, loss=loss, after=act(agent)
    )
