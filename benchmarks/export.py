"""`export`: size and speed of exported agents."""

import functools
import pathlib
import tempfile

import keras
import numpy as np

from benchmarks.backend import runtimes
from benchmarks.common import OBSERVATION
from benchmarks.common import describe
from benchmarks.common import make_agent
from benchmarks.common import median
from benchmarks.common import timed
from keras_dreamer.models.acting_step import input_specs

COLUMNS = {
    "backend": "",
    "size": "",
    "format": "",
    "file_mb": "file, MB",
    "weights_mb": "weights, MB",
    "export_s": "export, s",
    "run_ms": "file, ms",
    "act_ms": "act, ms",
}
_WARM_UP = 5
_MB = 1e6


def measure(case):
    """Exports an agent and measures the file and its actions.

    Args:
        case: dict with `backend`, `size`, `dtype`, `config` and `calls`.

    Returns:
        List of one dict.
    """
    model = make_agent(case)
    on_torch = keras.backend.backend() == "torch"
    format = "onnx" if on_torch else "tf_saved_model"
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / f"agent{'.onnx' * on_torch}"
        export_ms, _ = timed(lambda: model.export(path, format, verbose=False))
        files = [path] if on_torch else path.rglob("*")
        size = sum(file.stat().st_size for file in files if file.is_file())
        run = runtimes.load(str(path), format)
    weights = model.networks.acting_weights()
    row = {
        "format": format,
        "file_mb": size / _MB,
        "weights_mb": 4 * sum(int(np.prod(w.shape)) for w in weights) / _MB,
        "export_s": export_ms / 1000,
        **time_actions(model, run, case["calls"]),
    }
    return [{**describe(model), **row}]


def time_actions(model, run, calls):
    """Times actions of one environment, in turns with `Dreamer.act`."""
    rng = np.random.default_rng(0)
    observation = rng.standard_normal((1, *OBSERVATION.shape), "float32")
    inputs = {
        name: np.zeros((1, *spec.shape[1:]), spec.dtype)
        for name, spec in input_specs(model, deterministic=False).items()
    }
    inputs["observation/observation"] = observation
    running, acting, state = [], [], None
    for _ in range(calls + _WARM_UP):
        taken, outputs = timed(functools.partial(run, inputs))
        running.append(taken)
        inputs |= {
            name: outputs[f"next_{name}"]
            for name in inputs
            if name.startswith("state/")
        }
        taken, (_, state) = timed(
            lambda state=state: model.act(observation, state)
        )
        acting.append(taken)
    return {
        "run_ms": median(running[_WARM_UP:]),
        "act_ms": median(acting[_WARM_UP:]),
    }
