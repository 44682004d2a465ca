"""Plots the learning curves of runs: episode return over environment steps.

    python examples/plot.py examples/results/*.csv --out curves.png

Needs matplotlib (`pip install matplotlib`).
"""

import argparse
import csv
import math
import pathlib

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402


def read(path):
    """Returns steps and returns of the epochs in which episodes ended."""
    with open(path, newline="") as file:
        rows = [
            (float(row["env_steps"]), float(row["episode/return"]))
            for row in csv.DictReader(file)
        ]
    rows = [row for row in rows if not math.isnan(row[1])]
    return [row[0] for row in rows], [row[1] for row in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--out", default="curves.png")
    args = parser.parse_args()
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for path in args.files:
        axes.plot(*read(path), ".-", label=pathlib.Path(path).stem)
    axes.set_xlabel("environment steps")
    axes.set_ylabel("episode return (sampling policy)")
    axes.legend()
    figure.savefig(args.out, dpi=120)


if __name__ == "__main__":
    main()
