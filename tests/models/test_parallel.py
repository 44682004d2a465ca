import os
import pathlib
import socket
import subprocess
import sys

import agents
import keras
import numpy as np
import pytest

from keras_dreamer.models import parallel

pytestmark = pytest.mark.usefixtures("quick_backend")

BACKEND = keras.backend.backend()
TESTS = pathlib.Path(__file__).parents[1]
on_jax = pytest.mark.skipif(BACKEND != "jax", reason="Keras spreads on JAX")


def on_devices(test):
    """Marks tests of `several_devices.py`, which compiles for long."""
    return on_jax(pytest.mark.slow(test))


def data_parallel():
    return keras.distribution.DataParallel(devices=["cpu:0"])


@pytest.fixture(scope="module")
def model():
    model = agents.make_agent(
        agents.numbers(3), agents.bounded(2), **agents.SHALLOW
    )
    model.compile()
    return model


# What is refused.


def test_alone_without_a_distribution(model):
    assert parallel.process_id() == 0
    parallel.check_distribution(model, 3)


@pytest.mark.skipif(BACKEND == "jax", reason="JAX spreads")
def test_other_backends_are_refused(model):
    with data_parallel().scope():
        with pytest.raises(ValueError, match="JAX alone.*KERAS_BACKEND"):
            agents.train(model, agents.random_batch(model), 1)


@on_jax
def test_a_model_of_another_distribution_is_refused(model):
    with data_parallel().scope():
        with pytest.raises(ValueError, match="set_distribution first"):
            agents.train(model, agents.random_batch(model), 1)


@on_jax
def test_spread_weights_are_refused(model):
    mesh = keras.distribution.DeviceMesh((1,), ["batch"], ["cpu:0"])
    layouts = keras.distribution.LayoutMap(mesh)
    with keras.distribution.ModelParallel(layout_map=layouts).scope():
        with pytest.raises(ValueError, match="ModelParallel.*Use .*DataPar"):
            agents.train(model, agents.random_batch(model), 1)


# Eight virtual devices.


def start(devices, *arguments):
    """Starts `several_devices.py` on virtual devices."""
    flags = [f"--xla_force_host_platform_device_count={devices}"]
    for name, value in (agents.quick_options() or {}).items():
        flags.append(f"--{name}={str(value).lower()}")
    path = f"{TESTS.parent}{os.pathsep}{TESTS}"
    return subprocess.Popen(  # noqa: S603
        [sys.executable, TESTS / "several_devices.py", *arguments],
        env={**os.environ, "XLA_FLAGS": " ".join(flags), "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process):
    text, _ = process.communicate(timeout=600)
    assert process.returncode == 0, text


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What several_devices.py leaves behind."""
    folder = tmp_path_factory.mktemp("devices")
    finish(start(8, folder))
    return folder


def load(folder, name):
    with np.load(folder / f"{name}.npz") as file:
        return dict(file)


def assert_same(actual, expected, names, **tolerance):
    for name in names:
        np.testing.assert_allclose(
            actual[name], expected[name], err_msg=name, **tolerance
        )


def starting(run, *prefixes):
    return [name for name in run if name.startswith(prefixes)]


@on_devices
@pytest.mark.parametrize("devices", [2, 8])
def test_several_devices_train_as_one(folder, devices):
    one, run = load(folder, 1), load(folder, devices)
    logs = starting(one, "logs/loss", "logs/retnorm", "logs/ret_m", "logs/ent")
    assert len(logs) > 10
    assert_same(run, one, logs, rtol=1e-4, atol=1e-6)
    # Rounding noise may turn a step of 1e-4 around.
    assert_same(run, one, starting(one, "weights/"), rtol=1e-4, atol=3e-4)
    assert_same(run, one, ["latents/deter", "acting"], rtol=0, atol=1e-3)
    assert_same(run, one, ["latents/stoch", "step_id"], rtol=0)


@on_devices
def test_the_percentiles_are_wide(folder):
    """Else their equality would say nothing."""
    one = load(folder, 1)
    assert one["logs/retnorm/hi"][-1] > one["logs/retnorm/lo"][-1] + 0.1


@on_devices
def test_every_device_has_its_own_rows(folder):
    """Also where all steps are learned from at once."""
    rows = 8 * 4 * 3  # B * T * H
    assert load(folder, 8)["rows"] == rows // 8


@on_devices
def test_a_file_from_several_devices_acts_on_one(folder):
    model = keras.saving.load_model(folder / "8.keras")
    observation = np.linspace(-1, 1, 9, dtype="float32").reshape(3, 3)
    _, state = model.act(observation, deterministic=True)
    acting = load(folder, 8)["acting"]
    np.testing.assert_allclose(state["deter"], acting[-1], atol=1e-6)
    assert np.abs(acting[-1] - acting[-2]).max() > 1e-5


@on_devices
def test_batches_that_do_not_divide_are_refused(folder):
    error = (folder / "error.txt").read_text()
    assert "multiple of the number of devices that share the batch, 8" in error
    assert "batch_size=6" in error and "next valid value is 8" in error


# Two hosts.


@on_devices
def test_two_hosts_train_as_one(folder):
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        address = f"localhost:{probe.getsockname()[1]}"
    hosts = [start(2, folder, address, str(host)) for host in (0, 1)]
    try:
        for host in hosts:
            finish(host)
    finally:
        for host in hosts:
            host.kill()  # One waits for the other, even if it is gone.
    one = load(folder, 1)
    for host, half in enumerate([slice(4), slice(4, 8)]):
        run = load(folder, f"host{host}")
        assert_same(run, one, starting(one, "logs/loss"), rtol=1e-4, atol=1e-6)
        assert_same(run, one, starting(one, "logs/retnorm"), rtol=1e-4)
        assert_same(run, one, starting(one, "weights/"), rtol=1e-4, atol=3e-4)
        np.testing.assert_allclose(
            run["latents/deter"], one["latents/deter"][half], atol=1e-3
        )
        np.testing.assert_array_equal(run["step_id"], one["step_id"][half])
        np.testing.assert_allclose(run["acting"], one["acting"], atol=1e-3)
