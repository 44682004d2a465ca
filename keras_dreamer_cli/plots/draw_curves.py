"""Learning curves and losses of groups of runs."""

import itertools

import numpy as np

from keras_dreamer_cli.plots import style
from keras_dreamer_cli.plots.curves import bin_width
from keras_dreamer_cli.plots.curves import make_curve
from keras_dreamer_cli.plots.published import SOURCE
from keras_dreamer_cli.plots.published import published
from keras_dreamer_cli.plots.tables import env_steps

_MORE = {
    "dyn_ent": "entropy of the prior (nats)",
    "rep_ent": "entropy of the posterior (nats)",
    "retnorm/hi": "95th percentile of returns",
    "retnorm/lo": "5th percentile of returns",
    "val": "mean value",
    "tar": "mean imagined return",
    "adv_mag": "mean size of advantages",
    "replay_ratio": "replay ratio",
    "updates/s": "updates per second",
    "env_steps/s": "environment steps per second",
    "skipped": "skipped updates",
}


def returns_picture(groups):
    """Returns over environment steps, one panel for each environment.

    Args:
        groups: list of `Group`s.

    Returns:
        `Picture`.
    """
    envs = list(dict.fromkeys(group.env for group in groups))
    panels = [[g for g in groups if g.env == env] for env in envs]
    curves = [
        _curves(members, lambda run: run.episodes, "return")
        for members in panels
    ]
    reached = [
        max(env_steps(run) for group in members for run in group.runs)
        for members in panels
    ]

    def draw():
        alone = len(envs) == 1
        figure, axes = style.panels(
            len(envs), 2, 9.0 if alone else 5.3, 4.2 if alone else 3.6
        )
        for one, env, (width, own), last in zip(
            axes, envs, curves, reached, strict=True
        ):
            draw_curves(one, own, dots=True)
            draw_published(one, published(env), last)
            one.set_title(env or "unknown environment", loc="left")
            one.set_xlabel(f"environment steps (bins of {width:,.0f})")
            one.set_ylabel("episode return")
            one.set_xlim(left=0)
            style.count_steps(one)
            one.legend()
            if not any(np.isfinite(curve.seeds).any() for curve in own):
                one.set_xlabel("environment steps; no episode has ended yet")
        style.note(figure, returns_note(groups, False))
        return figure

    text = returns_note(groups, any(map(published, envs)))
    return style.Picture("returns", "Returns", text, draw)


def returns_note(groups, beside):
    """Tells how the curves were made.

    Args:
        groups: list of `Group`s.
        beside: bool. Whether published curves are shown.
    """
    text = (
        "Lines: mean of the training episodes (sampling policy) that ended in "
        "a bin, drawn at its end. Dots: single episodes."
    )
    if any(len(group.runs) > 1 for group in groups):
        text += (
            " Several seeds: mean over the seeds where all have data, band of "
            "one standard deviation, thin lines of single seeds."
        )
    return f"{text} Grey: {SOURCE}." if beside else text


def losses_picture(groups):
    """Every loss term over environment steps; `None` without epochs."""
    names = _names(groups, lambda name: name.split("/")[0] == "loss")
    text = (
        "Means over each epoch, binned like the returns. The first is the "
        "scaled sum that is minimised, the others are its single terms."
    )
    titles = {name: name.removeprefix("loss/") for name in names}
    return _epochs_picture(groups, titles, "losses", "Losses", text)


def metrics_picture(groups):
    """Entropies, returns in imagination, speeds; `None` without epochs."""
    names = _names(groups, lambda name: name in _MORE or name[:4] == "ent/")
    titles = {
        name: _MORE.get(name, f"policy entropy of {name[4:]} (nats)")
        for name in names
    }
    text = "Means over each epoch, binned like the returns."
    return _epochs_picture(groups, titles, "metrics", "Further metrics", text)


def _names(groups, wanted):
    names = {name for g in groups for run in g.runs for name in run.epochs}
    return sorted(filter(wanted, names), key=lambda n: (n.count("/"), n))


def _epochs_picture(groups, titles, name, title, text):
    if not titles:
        return None
    curves = {
        key: _curves(groups, lambda run: run.epochs, key) for key in titles
    }

    def draw():
        figure, axes = style.panels(len(titles), 4, 2.7, 1.8)
        for one, (key, (_, own)) in zip(axes, curves.items(), strict=True):
            draw_curves(one, own)
            one.set_title(titles[key], loc="left")
            style.count_steps(one)
        if len(groups) > 1:
            lines = axes[0].get_legend_handles_labels()
            longest = max(len(group.label) for group in groups)
            columns = max(1, 100 // (longest + 10))
            figure.legend(*lines, loc="outside upper left", ncols=columns)
        figure.supxlabel("environment steps", fontsize=9, color=style.quiet())
        return figure

    return style.Picture(name, title, text, draw)


def _curves(groups, source, name):
    """Returns the width of the bins and the `Curve` of each group."""
    samples = [
        [_samples(source(run), name) for run in group.runs] for group in groups
    ]
    last = [s.max() for s, _ in itertools.chain(*samples) if s.size]
    width = bin_width(max(last, default=0))
    return width, [
        make_curve(group.label, own, width)
        for group, own in zip(groups, samples, strict=True)
    ]


def _samples(table, name):
    """Returns steps and values; updates where no environment was stepped."""
    empty = np.zeros(0)
    steps = table.get("env_steps", table.get("updates", empty))
    return steps, table.get(name, np.full(len(steps), np.nan))


def draw_curves(axes, curves, dots=False):
    """Draws groups of seeds: mean, band, single seeds.

    Args:
        axes: matplotlib's axes.
        curves: list of `Curve`s.
        dots: bool. Whether to show the samples, too.
    """
    for index, curve in enumerate(curves):
        colour = f"C{index % 6}"
        if dots:
            for steps, values in curve.samples:
                axes.plot(
                    steps, values, ".", color=colour, ms=5, mew=0, alpha=0.4
                )
        label, several = curve.label, len(curve.seeds) > 1
        if several:
            for seed in curve.seeds:
                _line(axes, curve.steps, seed, color=colour, lw=0.8, alpha=0.6)
            axes.fill_between(
                curve.steps,
                curve.mean - curve.std,
                curve.mean + curve.std,
                color=colour,
                alpha=0.2,
                lw=0,
            )
            label += f" ({len(curve.seeds)} seeds)"
        _line(axes, curve.steps, curve.mean, color=colour, label=label)


def _line(axes, steps, values, **kwargs):
    """Plots a line; one of a single point would be invisible."""
    alone = np.isfinite(values).sum() == 1
    axes.plot(steps, values, marker="o" if alone else None, ms=4, **kwargs)


def draw_published(axes, known, last):
    """Draws a published curve as far as the runs go.

    Args:
        axes: matplotlib's axes.
        known: `Published` or `None`.
        last: float. Environment steps of the longest run.
    """
    if known is None:
        return
    shown = known.steps <= max(1.1 * last, 2 * known.steps[0])
    steps, mean, std = (x[shown] for x in (known.steps, known.mean, known.std))
    colour = style.quiet()
    axes.fill_between(
        steps, mean - std, mean + std, color=colour, alpha=0.15, lw=0
    )
    axes.plot(
        steps, mean, "--", color=colour, label="DreamerV3, published (5 seeds)"
    )
