"""When updates are due."""

import math


class RatioClock:
    """Counts how many updates are due at a number of agent steps.

    The first call starts the clock with one update. After that, `ratio`
    updates become due with every step.

    Source: `embodied/core/when.py` of danijar/dreamerv3 at 2411f7d;
    item 6.1.

    Args:
        ratio: float. Updates per agent step.

    Example:

    >>> clock = RatioClock(0.5)
    >>> [clock(step) for step in (10, 11, 12, 13, 14)]
    [1, 0, 1, 0, 1]
    """

    def __init__(self, ratio: float) -> None:
        if ratio < 0:
            raise ValueError(
                "`ratio` must not be negative. Received: "
                f"ratio={ratio}. Use 0 for no updates."
            )
        self.ratio = ratio
        self.previous = None

    def __call__(self, step: int) -> int:
        """Returns the number of updates due and counts them as done."""
        if not self.ratio:
            return 0
        if self.previous is None:
            self.previous = step
            return 1
        repeats = int((step - self.previous) * self.ratio)
        if repeats:
            self.previous += repeats / self.ratio
        return repeats

    def resume(self, previous: float | None, step: int, ratio: float) -> None:
        """Goes on after another clock.

        What the other one had counted towards its next update counts here,
        too, but never as more than that update, whatever its ratio was.

        Args:
            previous: float or `None`, `previous` of the other clock.
            step: int. Agent step at which it stopped.
            ratio: float. Its updates per agent step.
        """
        self.previous = previous
        if previous is not None and ratio != self.ratio:
            self.previous = step - (step - previous) * ratio / self.ratio

    def next_step(self, step: int) -> float:
        """Returns the first step after `step` with an update, or infinity."""
        if not self.ratio:
            return math.inf
        if self.previous is None:
            return step + 1
        due = step + 1
        while int((due - self.previous) * self.ratio) < 1:
            # Lands at or just before the step; rounding decides which.
            rest = (self.previous - due) + 1 / self.ratio
            due += max(1, math.floor(rest))
        return due
