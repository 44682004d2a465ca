"""`fit`: what the loop around the update adds to it."""

import functools
import time

import keras
import numpy as np

import keras_dreamer as kd
from benchmarks import backend
from benchmarks.common import FreeEnvs
from benchmarks.common import describe
from benchmarks.common import make_agent
from benchmarks.common import median
from benchmarks.common import timed

COLUMNS = {
    "backend": "",
    "size": "",
    "dtype": "",
    "bare_ms": "bare step, ms",
    "fit_ms": "in fit, ms",
    "overhead_ms": "overhead, ms",
    "overhead_percent": "%",
    "sample": "sample, ms",
    "slow_critic": "slow critic, ms",
    "write_back": "write back, ms",
    "collect": "collect, ms",
    "rest": "Keras and rest, ms",
}
_CAPACITY = 20_000
_WARM_UP = 3  # Updates at the start of a block that do not count.


class Stopwatch:
    """Adds up the seconds spent in functions, update by update."""

    def __init__(self):
        self.rounds = []

    def watch(self, name, function):
        """Returns `function`, with its time added under `name`."""

        @functools.wraps(function)
        def run(*args, **kwargs):
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                taken = time.perf_counter() - start
                now = self.rounds[-1] if self.rounds else {}
                now[name] = now.get(name, 0.0) + taken

        return run

    def turn(self):
        """Ends a round and begins the next one."""
        now = time.perf_counter()
        if self.rounds:
            self.rounds[-1]["whole"] = now - self.rounds[-1].pop("start")
        self.rounds.append({"start": now})


class Turns(keras.callbacks.Callback):
    """Turns a stopwatch when an update begins; its own part is small."""

    def __init__(self, stopwatch):
        super().__init__()
        self.stopwatch = stopwatch

    def on_train_batch_begin(self, batch, logs=None):
        self.stopwatch.turn()


def measure(case):
    """Measures updates inside of `fit` and on their own, in turns.

    Args:
        case: dict with `backend`, `size`, `dtype`, `config`, `envs`, `ratio`,
            `updates` and `blocks`.

    Returns:
        List of one dict.
    """
    model = make_agent(case)
    stopwatch = Stopwatch()
    dataset, callbacks = make_loop(model, case, stopwatch)
    model.make_train_function()
    model.train_function = stopwatch.watch("step", model.train_function)
    rounds, bare = [], []
    for _ in range(case["blocks"]):
        stopwatch.rounds.clear()
        model.fit(
            dataset,
            steps_per_epoch=case["updates"] + _WARM_UP + 1,
            callbacks=callbacks,
            verbose=0,
        )
        rounds += stopwatch.rounds[_WARM_UP:-1]  # The last one has no end.
        bare += time_bare(model, dataset.draw(), case["updates"])
    return [{**describe(model), **summarise(rounds, median(bare))}]


def make_loop(model, case, stopwatch):
    """Returns the dataset and the callbacks, watched by the stopwatch."""
    envs = FreeEnvs(case["envs"])
    replay = kd.replay.Replay(model.config, envs, capacity=_CAPACITY)
    driver = kd.Driver(envs, model, replay)
    # Full, as in most of a run: no row asks the system for memory.
    while len(replay) < _CAPACITY:
        driver.advance(case["envs"])
    dataset = kd.replay.ReplayDataset(replay)
    dataset.draw = stopwatch.watch("sample", dataset.draw)
    collect = kd.callbacks.TrainRatio(driver, case["ratio"])
    named = {
        "slow_critic": kd.callbacks.SlowCritic(model.config.slow_rate),
        "write_back": kd.callbacks.LatentWriteBack(),
        "collect": collect,
    }
    for name, callback in named.items():
        for method in ("on_train_batch_begin", "on_train_batch_end"):
            watched = stopwatch.watch(name, getattr(callback, method))
            setattr(callback, method, watched)
    return dataset, [*named.values(), Turns(stopwatch)]


def time_bare(model, batch, updates):
    """Times the step that `fit` calls, on one batch."""
    batch = {k: v for k, v in batch.items() if k != "step_id"}
    step = backend.Step(model)
    times = [timed(lambda: step(batch))[0] for _ in range(updates + _WARM_UP)]
    step.close()
    return times[_WARM_UP:]


def summarise(rounds, bare_ms):
    """Returns the milliseconds of an update in `fit`, in parts.

    The overhead is what an update in `fit` spends outside of its step. It is
    not the difference to the bare step, whose noise may be larger than it.
    """
    means = {
        name: 1e3 * float(np.mean([r.get(name, 0.0) for r in rounds]))
        for name in ("sample", "slow_critic", "write_back", "collect")
    }
    steps = [r["step"] - r["sample"] for r in rounds]
    overheads = [r["whole"] - s for r, s in zip(rounds, steps, strict=True)]
    overhead_ms = 1e3 * float(np.mean(overheads))
    return {
        "bare_ms": bare_ms,
        "step_ms": 1e3 * median(steps),
        "fit_ms": 1e3 * median([r["whole"] for r in rounds]),
        "overhead_ms": overhead_ms,
        "overhead_ms_median": 1e3 * median(overheads),
        "overhead_percent": 100 * overhead_ms / bare_ms,
        **means,
        "rest": overhead_ms - sum(means.values()),
    }
