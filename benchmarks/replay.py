"""`replay`: adding, sampling, writing back, and memory."""

import numpy as np

import keras_dreamer as kd
from benchmarks.common import FreeEnvs
from benchmarks.common import median
from benchmarks.common import memory
from benchmarks.common import timed

COLUMNS = {
    "size": "",
    "dtype": "",
    "steps": "stored steps",
    "add_ms": "add one, ms",
    "add_batch_ms": "add of all envs, ms",
    "sample_ms": "sample, ms",
    "write_back_ms": "write back, ms",
    "bytes_per_step": "bytes a step",
    "payload": "payload, bytes",
    "bytes_ratio": "ratio",
    "resident_ratio": "resident, ratio",
}
_CHUNK = 64  # Steps of each environment that are added at once.
_WARM_UP = 5


def measure(case):
    """Measures a replay at several numbers of stored steps.

    Args:
        case: dict with `size`, `dtype`, `config`, `envs` (a number), `steps`
            (list of numbers of stored steps) and `calls`.

    Returns:
        List of dicts, one for each number of steps.
    """
    config = kd.Config(case["size"], **case.get("config", {}))
    return [
        measure_at(config, case["dtype"], case["envs"], steps, case["calls"])
        for steps in sorted(case["steps"])
    ]


def measure_at(config, dtype, num_envs, steps, calls):
    """Fills a replay with a number of steps and times its methods."""
    before, _ = memory()
    envs = FreeEnvs(num_envs)
    replay = kd.replay.Replay(config, envs, dtype=dtype)
    make = Steps(config, dtype, envs)
    streams = np.tile(np.arange(num_envs), _CHUNK)
    chunk = make(len(streams))
    for start in range(0, steps, len(streams)):
        count = min(len(streams), steps - start)
        replay.add_batch(_first(chunk, count), streams[:count])
    resident = (memory()[0] - before) * 2**20
    # The queue of fresh windows would be served first.
    while replay.queued:
        replay.sample(config.batch_size)
    row = {
        "steps": steps,
        "envs": num_envs,
        "bytes_per_step": replay.nbytes / steps,
        "payload": make.payload,
        "bytes_ratio": replay.nbytes / steps / make.payload,
        "resident_ratio": resident / steps / make.payload,
    }
    return {**row, **time_methods(replay, make, config, calls)}


class Steps:
    """Makes steps of noise as the driver hands them to the replay."""

    def __init__(self, config, dtype, envs):
        self.config = config
        self.dtype = kd.replay.schema.numpy_dtype(dtype)
        self.observation = envs.single_observation_space.shape
        self.action = envs.single_action_space.shape
        one = self(1)
        latents = one["context"]
        latents["stoch"] = latents["stoch"].astype("uint8")  # As stored.
        self.payload = sum(np.asarray(value).nbytes for value in _leaves(one))

    def __call__(self, *lead):
        rng = np.random.default_rng(0)
        flags = ("is_first", "is_last", "is_terminal")

        def numbers(*shape):
            return rng.standard_normal((*lead, *shape), dtype="float32")

        return {
            "observation": {"observation": numbers(*self.observation)},
            "action": {"action": numbers(*self.action)},
            "reward": numbers(),
            **{name: np.zeros(lead, bool) for name in flags},
            "context": self.latents(*lead),
        }

    def latents(self, *lead):
        """Returns latents as the agent computes them."""
        rng = np.random.default_rng(0)
        c = self.config
        deter = rng.standard_normal((*lead, c.deter), dtype="float32")
        stoch = rng.integers(c.classes, size=(*lead, c.stoch), dtype="int32")
        return {"deter": deter.astype(self.dtype), "stoch": stoch}


def time_methods(replay, make, config, calls):
    """Times the methods in turns, as training calls them."""
    streams = np.arange(replay.num_streams)
    one, several = _first(make(1), 0, index=True), make(len(streams))
    latents = make.latents(config.batch_size, config.batch_length)
    found = {"add": [], "add_batch": [], "sample": [], "write_back": []}
    for call in range(calls + _WARM_UP):
        stream = int(call % replay.num_streams)
        taken = {
            "add": timed(lambda stream=stream: replay.add(one, stream))[0],
            "add_batch": timed(lambda: replay.add_batch(several, streams))[0],
        }
        taken["sample"], batch = timed(lambda: replay.sample(config.batch_size))
        step_id = batch["step_id"]
        taken["write_back"], _ = timed(
            lambda step_id=step_id: replay.update(step_id, latents)
        )
        for name, value in taken.items():
            found[name].append(value)
    return {
        f"{name}_ms": median(values[_WARM_UP:])
        for name, values in found.items()
    }


def _leaves(nest):
    for value in nest.values():
        if isinstance(value, dict):
            yield from _leaves(value)
        else:
            yield value


def _first(nest, count, index=False):
    """Returns the first `count` rows, or the row `count`."""
    return {
        key: _first(value, count, index)
        if isinstance(value, dict)
        else value[count if index else slice(count)]
        for key, value in nest.items()
    }
