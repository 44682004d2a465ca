"""The published scores of DreamerV3 on dm_control."""

import csv
import dataclasses
import importlib.resources

import numpy as np

# What the table says of itself in its head.
SOURCE = (
    "DreamerV3, 12 million parameters, mean and standard deviation of 5 seeds, "
    "training episodes; score file of danijar/dreamerv3 (MIT)"
)


@dataclasses.dataclass(frozen=True)
class Published:
    """The curve of a task.

    Attributes:
        steps: `(N,)`. Environment steps.
        mean: `(N,)`. Mean return over the seeds.
        std: `(N,)`. Population standard deviation over the seeds.
    """

    steps: np.ndarray
    mean: np.ndarray
    std: np.ndarray

    def at(self, steps):
        """Returns the mean at a number of steps, NaN outside of the curve."""
        return float(np.interp(steps, self.steps, self.mean, np.nan, np.nan))


def published(env):
    """Returns the published curve of an environment.

    Args:
        env: str such as "dmc:walker_walk", or `None`.

    Returns:
        `Published`, or `None` if there is none.
    """
    prefix, _, task = (env or "").partition(":")
    if prefix != "dmc":
        return None
    file = importlib.resources.files(__package__) / "published.csv"
    lines = file.read_text(encoding="utf-8").splitlines()
    table = csv.DictReader(line for line in lines if line[:1] != "#")
    rows = [
        [float(row[name]) for name in ("env_steps", "mean", "std")]
        for row in table
        if row["task"] == task
    ]
    return Published(*np.array(rows).T) if rows else None
