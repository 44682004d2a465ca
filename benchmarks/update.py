"""`update`: how long an update takes, and where its time goes."""

from benchmarks import backend
from benchmarks.common import Yardstick
from benchmarks.common import describe
from benchmarks.common import make_agent
from benchmarks.common import make_batch
from benchmarks.common import median
from benchmarks.common import peak_memory
from benchmarks.common import timed

COLUMNS = {
    "backend": "",
    "size": "",
    "dtype": "",
    "batch_size": "B",
    "batch_length": "T",
    "imag_length": "H",
    "first_s": "first, s",
    "warm_s": "first, warm cache, s",
    "update_ms": "update, ms",
    "yardstick_ms": "yardstick, ms",
    "yardsticks": "",
    "peak_mb": "peak, MB",
    "kernels": "",
    "noise": "noise, ms",
    "world_model": "world model, ms",
    "imagination": "imagination, ms",
    "heads": "heads, ms",
    "optimizer": "optimizer, ms",
}
_WARM_UP = 2  # Updates; allocators and clocks settle.
_PRODUCTS = 2  # Yardsticks after each update.


def measure(case):
    """Measures updates on one batch of noise.

    Args:
        case: dict with `backend`, `size`, `dtype`, `config`, `updates` and
            `breakdown`.

    Returns:
        List of one dict.
    """
    model = make_agent(case)
    batch = make_batch(model)
    step = backend.Step(model)
    first, _ = timed(lambda: step(batch))
    for _ in range(_WARM_UP):
        step(batch)
    # Before the yardstick's operands, which are no part of an update.
    row = {"first_s": first / 1e3, "peak_mb": peak_memory()}
    row.update(time_updates(step, batch, Yardstick(model.config), case))
    step.close()
    if case["breakdown"]:
        row.update(break_down(model, batch, row["update_ms"], case["updates"]))
        row["kernels"] = backend.kernels(model, batch)
    return [{**describe(model), **row}]


def time_updates(step, batch, yardstick, case):
    """Times updates and yardsticks in turns, so that noise meets both."""
    updates, products = [], []
    for _ in range(case["updates"]):
        updates.append(timed(lambda: step(batch))[0])
        products += [yardstick() for _ in range(_PRODUCTS)]
    return {
        "update_ms": median(updates),
        "update_ms_least": min(updates),
        "yardstick_ms": median(products),
        "yardstick_ms_least": min(products),
        "yardsticks": median(updates) / median(products),
    }


def break_down(model, batch, update_ms, repeats):
    """Returns the milliseconds of the parts of an update."""
    times = backend.parts(model, batch)
    rounds = [times() for _ in range(repeats)]
    medians = {name: median([r[name] for r in rounds]) for name in rounds[0]}
    return backend.breakdown({**medians, "update": update_ms})
