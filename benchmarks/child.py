"""One measurement in a process of its own: `python -m benchmarks.child FILE`.

The file holds `{"command": ..., "case": ..., "cache": ...}` and gets the result
instead, its rows and the columns of the table.
The backend comes from `KERAS_BACKEND`, which the parent sets.
"""

import importlib
import json
import pathlib
import sys

import keras_dreamer as kd


def main(path):
    path = pathlib.Path(path)
    task = json.loads(path.read_text())
    # As the examples train, but compiled programs are kept only if asked to.
    kd.configure_runtime(task["cache"])
    module = importlib.import_module(f"benchmarks.{task['command']}")
    rows = module.measure(task["case"])
    path.write_text(json.dumps({"rows": rows, "columns": module.COLUMNS}))


if __name__ == "__main__":
    main(sys.argv[1])
