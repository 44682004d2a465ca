"""What several measurements share: agents, batches, clocks, memory."""

import functools
import pathlib
import resource
import statistics

import gymnasium
import keras
import numpy as np
from gymnasium.vector import AutoresetMode
from keras import ops

import keras_dreamer as kd
from benchmarks import backend
from benchmarks.backend.parts import milliseconds

# Those of the reference's measurement: walker_walk.
OBSERVATION = gymnasium.spaces.Box(-np.inf, np.inf, (24,), np.float32)
ACTION = gymnasium.spaces.Box(-1, 1, (6,), np.float32)
_MEGABYTE = 2**20

timed = functools.partial(milliseconds, wait=backend.wait)


def make_agent(case):
    """Returns a compiled `Dreamer`.

    Args:
        case: dict with `size` and `dtype`; it may have further fields of
            `Config` under `config`.
    """
    config = kd.Config(case["size"], **case.get("config", {}))
    model = kd.Dreamer(OBSERVATION, ACTION, config, dtype=case["dtype"])
    model.compile()
    return model


def make_batch(model, seed=0):
    """Returns a batch of noise, as a `ReplayDataset` would draw it."""
    rng = np.random.default_rng(seed)
    c = model.config
    lead = (c.batch_size, c.batch_length + c.replay_context)

    def numbers(*shape):
        return rng.standard_normal(shape).astype("float32")

    stoch = (c.batch_size, c.stoch)
    return {
        "observation": {"observation": numbers(*lead, *OBSERVATION.shape)},
        "action": {"action": numbers(*lead, *ACTION.shape)},
        "reward": numbers(*lead),
        **{
            name: np.zeros(lead, bool)
            for name in ("is_first", "is_last", "is_terminal")
        },
        "context": {
            "deter": numbers(c.batch_size, c.deter),
            "stoch": rng.integers(c.classes, size=stoch, dtype="int32"),
        },
    }


class FreeEnvs(gymnasium.vector.VectorEnv):
    """Environments that cost nothing: numbers drawn in advance, no ends."""

    def __init__(self, num_envs, seed=0):
        self.num_envs = num_envs
        self.metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}
        self.single_observation_space = OBSERVATION
        self.single_action_space = ACTION
        rng = np.random.default_rng(seed)
        shape = (64, num_envs, *OBSERVATION.shape)
        self._observations = rng.standard_normal(shape).astype("float32")
        self._rewards = rng.standard_normal((64, num_envs))
        self._never = np.zeros(num_envs, bool)
        self._step = 0

    def reset(self, *, seed=None, options=None):
        return self._observations[0], {}

    def step(self, actions):
        self._step += 1
        now = self._step % len(self._observations)
        observation, reward = self._observations[now], self._rewards[now]
        return observation, reward, self._never, self._never, {}


class Yardstick:
    """One float32 matrix product of the size that an update has most of.

    16,384 rows are B * T * (H + 1) of the recipe, imagined states; they go
    into the first layer of a head. Timed between the updates, it says what
    the machine was able to do in that very minute.
    """

    def __init__(self, config, seed=0):
        rng = np.random.default_rng(seed)
        features = config.deter + config.stoch * config.classes
        self.shapes = (16384, features), (features, config.units)
        self._operands = [
            ops.convert_to_tensor(rng.standard_normal(shape, dtype="float32"))
            for shape in self.shapes
        ]
        self()  # Compiles.

    def __call__(self):
        """Returns the milliseconds that the product took."""
        return timed(lambda: backend.product(*self._operands))[0]


def median(values):
    """Returns the median of the numbers in a list."""
    return float(statistics.median(values))


def memory():
    """Returns the MB in use by this process: now, and at most so far."""
    status = pathlib.Path("/proc/self/status")
    if not status.exists():  # Not Linux: only the most is known, as bytes.
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / _MEGABYTE, peak / _MEGABYTE
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return tuple(int(lines[k].split()[0]) / 1024 for k in ("VmRSS", "VmHWM"))


def peak_memory():
    """Returns the most MB in use, those of an accelerator if there is one."""
    device = backend.device_peak()
    return memory()[1] if device is None else device / _MEGABYTE


def describe(model):
    """Returns what a result says about the agent that it was measured on."""
    c = model.config
    return {
        "parameters": model.count_params(),
        "batch_size": c.batch_size,
        "batch_length": c.batch_length,
        "imag_length": c.imag_length,
        "device": backend.DEVICE,
        "keras": keras.__version__,
    }
