"""Runs measurements, prints a table and writes the results.

Each case, such as a backend with a size, runs in a process of its own, so that
memory and compilation are those of that case. See benchmarks/README.md.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from benchmarks import cases
from benchmarks import report

DEFAULT_BACKEND = "jax"  # Of the measurements that use none.


def main(arguments=None):
    arguments = sys.argv[1:] if arguments is None else arguments
    args = parse(arguments)
    about = report.circumstances()
    rows, columns, failures = [], {}, 0
    for case in cases.expand(vars(args)):
        labels = [case[key] for key in _LABELS if key in case]
        config = [f"{k}={v}" for k, v in case.get("config", {}).items()]
        print("measuring", args.command, *labels, *config, flush=True)
        try:
            found, columns = measure(args.command, dict(case))
        except subprocess.CalledProcessError as error:
            # The others are still worth measuring.
            print(f"failed with exit code {error.returncode}", flush=True)
            failures += 1
            continue
        known = {
            k: v for k, v in case.items() if not isinstance(v, dict | list)
        }
        rows += [{**known, **row} for row in found]
        failures += sum(row.get("failed", 0) for row in found)
    if rows:
        print(report.table(rows, columns))
        report.write(args.out, arguments, about, rows, columns)
        print(f"written to {args.out}.json and .md")
    return 1 if failures else 0


_LABELS = ("backend", "size", "dtype", "env", "mode")


def parse(arguments):
    """Returns the arguments of the command line, with `out` filled in."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__
    )
    cases.add_arguments(parser.add_subparsers(dest="command", required=True))
    args = parser.parse_args(arguments)
    if args.out is None:
        args.out = str(report.ROOT / "benchmarks" / "results" / args.command)
    args.out = str(pathlib.Path(args.out).absolute())
    return args


def measure(command, case):
    """Measures one case; returns its rows and the columns of the table."""
    if not case.pop("warm_cache", False) or case["backend"] != "jax":
        return _run(command, case)
    with tempfile.TemporaryDirectory() as cache:
        rows, columns = _run(command, case, cache)
        again = {**case, "updates": 1, "breakdown": False}
        for row, warm in zip(rows, _run(command, again, cache)[0], strict=True):
            row["warm_s"] = warm["first_s"]
    return rows, columns


def _run(command, case, cache=None):
    environment = {
        **os.environ,
        "KERAS_BACKEND": case.get("backend", DEFAULT_BACKEND),
        "TF_CPP_MIN_LOG_LEVEL": "3",  # What TensorFlow says at its start.
    }
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "task.json"
        task = {"command": command, "case": case, "cache": cache}
        path.write_text(json.dumps(task))
        subprocess.run(
            [sys.executable, "-m", "benchmarks.child", str(path)],
            cwd=report.ROOT,
            env=environment,
            check=True,
        )
        result = json.loads(path.read_text())
    return result["rows"], result["columns"]


if __name__ == "__main__":
    sys.exit(main())
