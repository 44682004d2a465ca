"""Learning curves: means over bins of steps, then over seeds."""

import dataclasses
import math

import numpy as np

BINS = 50  # About so many on the axis.


@dataclasses.dataclass(frozen=True)
class Curve:
    """A number over environment steps, for one group of runs.

    Attributes:
        label: str.
        steps: `(N,)`. Ends of the bins.
        seeds: `(K, N)`. Mean in each bin, of each of K seeds; between two bins
            with values interpolated, NaN before the first and after the last.
        samples: list of K pairs `(steps, values)`, what the means are of.
    """

    label: str
    steps: np.ndarray
    seeds: np.ndarray
    samples: list

    @property
    def mean(self):
        """`(N,)`, mean over the seeds; NaN where not all have values."""
        return self.seeds.mean(axis=0)

    @property
    def std(self):
        """`(N,)`, population standard deviation over the seeds."""
        return self.seeds.std(axis=0)


def make_curve(label, samples, width):
    """Bins the samples of several seeds.

    Args:
        label: str.
        samples: list of pairs `(steps, values)` of `(n,)` arrays.
        width: float. Steps of a bin. The first one is `0 < steps <= width`.

    Returns:
        `Curve`.
    """
    samples = [_finite(*pair) for pair in samples]
    last = max((steps.max() for steps, _ in samples if steps.size), default=0)
    count = max(1, math.ceil(last / width))
    ends = width * np.arange(1, count + 1)
    seeds = np.stack([_binned(*pair, width, count) for pair in samples])
    return Curve(label, ends, seeds, samples)


def bin_width(last):
    """Returns a round width of bins for curves of up to `last` steps."""
    least = max(last / BINS, 1.0)
    power = 10.0 ** math.floor(math.log10(least))
    return next(f * power for f in (1, 2, 5, 10) if f * power >= least * 0.999)


def _finite(steps, values):
    steps, values = np.asarray(steps, float), np.asarray(values, float)
    kept = np.isfinite(steps) & np.isfinite(values)
    return steps[kept], values[kept]


def _binned(steps, values, width, count):
    """Returns the mean in each bin, `(count,)`."""
    index = np.clip(np.ceil(steps / width).astype(int) - 1, 0, count - 1)
    sums = np.bincount(index, values, count)
    counts = np.bincount(index, minlength=count)
    filled = np.flatnonzero(counts)
    means = np.full(count, np.nan)
    if filled.size:
        inside = np.arange(filled[0], filled[-1] + 1)
        known = sums[filled] / counts[filled]
        means[inside] = np.interp(inside, filled, known)
    return means
