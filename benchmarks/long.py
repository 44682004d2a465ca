"""`long`: whether memory and time per update stay as they are."""

import csv
import gc
import pathlib
import time

import keras
import numpy as np

from benchmarks.common import describe
from benchmarks.common import make_agent
from benchmarks.common import memory
from benchmarks.fit import Stopwatch
from benchmarks.fit import make_loop

COLUMNS = {
    "backend": "",
    "size": "",
    "dtype": "",
    "batch_size": "B",
    "batch_length": "T",
    "updates": "",
    "first_ms": "update in the first quarter, ms",
    "last_ms": "in the last, ms",
    "first_mb": "memory in the first quarter, MB",
    "last_mb": "in the last, MB",
    "csv": "",
}
FIELDS = ("update", "update_ms", "rss_mb", "peak_mb", "objects")


class Record(keras.callbacks.Callback):
    """Writes a line of a CSV file every so many updates.

    Args:
        path: path of the file.
        every: int. Updates of a line.
    """

    def __init__(self, path, every):
        super().__init__()
        self.path = pathlib.Path(path)
        self.every = every
        self.rows = []
        self.updates = 0

    def on_train_begin(self, logs=None):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("w", newline="")
        self._writer = csv.DictWriter(self._file, FIELDS, lineterminator="\n")
        self._writer.writeheader()
        self._start = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        self.updates += 1
        if self.updates % self.every:
            return
        taken = time.perf_counter() - self._start
        resident, peak = memory()
        row = {
            "update": self.updates,
            "update_ms": round(1e3 * taken / self.every, 3),
            "rss_mb": round(resident, 1),
            "peak_mb": round(peak, 1),
            "objects": len(gc.get_objects()),
        }
        self.rows.append(row)
        self._writer.writerow(row)
        self._file.flush()  # The run takes hours: it can be watched.
        self._start = time.perf_counter()

    def on_train_end(self, logs=None):
        self._file.close()


def measure(case):
    """Trains for long, with all callbacks, on environments that are free.

    Args:
        case: dict with `backend`, `size`, `dtype`, `config`, `envs`, `ratio`,
            `updates`, `every` and `csv`, the path of the file.

    Returns:
        List of one dict.
    """
    model = make_agent(case)
    dataset, callbacks = make_loop(model, case, Stopwatch())
    record = Record(case["csv"], case["every"])
    model.fit(
        dataset,
        epochs=case["updates"] // case["every"],
        steps_per_epoch=case["every"],
        callbacks=[*callbacks[:-1], record],
        verbose=0,
    )
    # The place of the results is no part of them.
    file = {"csv": record.path.name}
    return [{**describe(model), **summarise(record.rows), **file}]


def summarise(rows):
    """Compares the first quarter, without its first line, with the last."""
    quarter = max(1, len(rows) // 4)
    first, last = rows[1 : quarter + 1] or rows, rows[-quarter:]

    def mean(part, name):
        return float(np.mean([row[name] for row in part]))

    return {
        "first_ms": mean(first, "update_ms"),
        "last_ms": mean(last, "update_ms"),
        "first_mb": mean(first, "rss_mb"),
        "last_mb": mean(last, "rss_mb"),
    }
