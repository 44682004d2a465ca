"""What evaluated episodes say about a policy."""

import dataclasses
import math

import numpy as np

# Student's t for 1, 2 and 3 degrees of freedom.
_T_975 = {1: 12.706205, 2: 4.302653, 3: 3.182446}
_NORMAL_975 = 1.959964


@dataclasses.dataclass(frozen=True, eq=False)
class Scores:
    """Returns and lengths of whole episodes.

    Attributes:
        returns: `(episodes,)` float array, the sums of rewards.
        lengths: `(episodes,)` int array, in agent steps.
    """

    returns: np.ndarray
    lengths: np.ndarray

    @property
    def mean(self):
        """Mean of the returns, a float; NaN without episodes."""
        return float(self.returns.mean()) if len(self.returns) else math.nan

    @property
    def ci(self):
        """Half width of the 95 % confidence interval of the mean return.

            t[0.975, n - 1] * std / sqrt(n)

        By Student's t, which takes means of n returns for normal. `mean - ci`
        and `mean + ci` are the interval; it is NaN for fewer than 2 episodes.
        """
        count = len(self.returns)
        if count < 2:
            return math.nan
        error = float(self.returns.std(ddof=1)) / math.sqrt(count)
        return t_975(count - 1) * error

    @property
    def min(self):
        """Lowest return, a float."""
        return float(self.returns.min())

    @property
    def max(self):
        """Highest return, a float."""
        return float(self.returns.max())

    def __str__(self):
        interval = f" ± {self.ci:.1f} (95 % of the mean)"
        return (
            f"return {self.mean:.1f}{'' if math.isnan(self.ci) else interval} "
            f"over {len(self.returns)} episodes, from {self.min:.1f} to "
            f"{self.max:.1f}, length {self.lengths.mean():.1f}"
        )


def t_975(freedom):
    """Returns the 97.5 % quantile of Student's t.

    From 4 degrees of freedom on by the expansion around the normal quantile
    (Abramowitz and Stegun, 26.7.5), which is right to 1e-3.

    Args:
        freedom: int. Degrees of freedom, 1 or more.
    """
    if freedom in _T_975:
        return _T_975[freedom]
    z, v = _NORMAL_975, freedom
    return (
        z
        + (z**3 + z) / (4 * v)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
        + (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z)
        / (92160 * v**4)
    )
