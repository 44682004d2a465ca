"""Numbers of runs as tables of text."""

import dataclasses
import importlib.metadata
import platform

import numpy as np

from keras_dreamer_cli.plots.groups import differing
from keras_dreamer_cli.plots.published import published

# What final returns are of.
LAST = 0.1
LEAST = 10
FINAL = (
    f"Final return: mean and standard deviation over the newest {LAST:.0%} of "
    f"the training episodes, at least {LEAST}; their number in parentheses."
)


@dataclasses.dataclass(frozen=True)
class Table:
    """A table of strings.

    Attributes:
        head: list of the columns' names.
        rows: list of lists of strings.
        marked: set of indices of rows that stand out.
    """

    head: list
    rows: list
    marked: frozenset = frozenset()


def results(groups):
    """Returns a row of final numbers for each run.

    Args:
        groups: list of `Group`s.

    Returns:
        `Table`.
    """
    beside = any(published(group.env) for group in groups)
    head = [
        *("group", "seed", "env steps", "updates", "episodes"),
        "final return",
        *(["published there"] if beside else []),
        "time",
    ]
    rows = [
        [
            group.label,
            "?" if run.seed is None else str(run.seed),
            f"{env_steps(run):,.0f}",
            f"{_last(run.epochs, 'updates'):,.0f}",
            f"{len(run.episodes['return']):,}",
            _plus_minus(final_returns(run)),
            *([_published(run)] if beside else []),
            clock(run.seconds),
        ]
        for group in groups
        for run in group.runs
    ]
    return Table(head, rows)


def final_returns(run):
    """Returns the returns of a run's newest episodes, see `FINAL`."""
    returns = run.episodes["return"]
    return returns[-max(LEAST, round(LAST * len(returns))) :]


def final_return(group):
    """Returns the mean over the seeds of the final returns, as text."""
    means = [final_returns(run).mean() for run in group.runs if _ended(run)]
    if not means:
        return "–"
    spread = f" ± {np.std(means):,.1f}" if len(means) > 1 else ""
    return f"{np.mean(means):,.1f}{spread}"


def _ended(run):
    return final_returns(run).size > 0


def env_steps(run):
    """Returns how far a run has come, in environment steps."""
    return max(_last(run.epochs, "env_steps"), _last(run.episodes, "env_steps"))


def settings(groups):
    """Returns the settings, a column for each group."""
    firsts = [group.runs[0] for group in groups]
    names = dict.fromkeys(name for run in firsts for name in run.settings)
    apart = differing(firsts)
    # What the groups differ in comes first.
    names = [*apart, *(name for name in names if name not in apart)]
    rows = [
        [name, *(_text(run.settings.get(name)) for run in firsts)]
        for name in names
    ]
    head = ["setting", *(group.label for group in groups)]
    return Table(head, rows, frozenset(range(len(apart))))


def versions(groups):
    """Returns the versions that the runs and this report were made with."""
    runs = [run for group in groups for run in group.runs]
    rows = [
        [name, ", ".join(dict.fromkeys(str(r.versions[name]) for r in runs))]
        for name in runs[0].versions
    ]
    here = [
        f"{name} {importlib.metadata.version(name)}"
        for name in ("keras-dreamer", "keras", "numpy", "matplotlib")
        if _installed(name)
    ]
    here.append(f"Python {platform.python_version()}")
    return Table(
        ["of the runs", ""], [*rows, ["of this report", ", ".join(here)]]
    )


def clock(seconds):
    """Returns a time as hours and minutes."""
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02} min"


def _published(run):
    known = published(run.env)
    mean = known.at(env_steps(run)) if known else np.nan
    return "–" if np.isnan(mean) else f"{mean:,.1f}"


def _last(table, name):
    values = table.get(name, np.zeros(0))
    values = values[np.isfinite(values)]
    return float(values[-1]) if values.size else 0.0


def _plus_minus(values):
    if not values.size:
        return "–"
    return f"{values.mean():,.1f} ± {values.std():,.1f} ({values.size})"


def _text(value):
    return f"{value:g}" if isinstance(value, float) else str(value)


def _installed(name):
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True
