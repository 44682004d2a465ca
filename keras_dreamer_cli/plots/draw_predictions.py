"""Open-loop predictions beside what happened."""

import numpy as np

from keras_dreamer_cli.plots import errors
from keras_dreamer_cli.plots import style

MOST = 16  # Panels of one key.


def prediction_picture(result, leaf, ahead, prefix):
    """Returns the `Picture` of one key.

    Args:
        result: `OpenLoop`, several futures of one window.
        leaf: `Leaf` of the key.
        ahead: int. Steps that the actor imagines.
        prefix: str, that the file begins with.
    """
    truth = np.asarray(result.truth[leaf.key][0], float)
    futures = result.prediction[leaf.key]
    names = [
        f"{leaf.key}[{', '.join(map(str, index))}]" if index else leaf.key
        for index in np.ndindex(leaf.shape)
    ]
    steps = len(truth)
    truth = truth.reshape(steps, -1)
    tail = futures.shape[len(leaf.shape) + 2 :]
    futures = futures.reshape(len(futures), steps, truth.shape[1], *tail)

    def draw():
        shown = names[:MOST]
        figure, axes = style.panels(len(shown), 4, 2.7, 1.9)
        for index, (one, name) in enumerate(zip(axes, shown, strict=True)):
            draw = _draw_classes if leaf.discrete else _draw_numbers
            draw(one, truth[:, index], futures[:, :, index])
            one.set_title(name, loc="left")
            _mark_context(one, result.context, ahead, steps)
        if not leaf.discrete:
            _explain(figure, axes[0])
        style.note(figure, _axis_note(result.context, ahead))
        return figure

    text = _foreseen(result) + (
        " Colours: probability of each class, line: what was observed."
        if leaf.discrete
        else " Line: what was observed. Coloured: mean and 10 to 90 % of "
        f"{len(futures)} sampled futures."
    )
    if len(names) > MOST:
        text += f" The first {MOST} of {len(names)} numbers are shown."
    title = f"Open loop: {leaf.key}"
    name = f"{prefix}open_loop_{style.file_name(leaf.key)}"
    return style.Picture(name, title, text, draw)


def reward_picture(result, ahead, prefix):
    """Returns the `Picture` of the rewards, see `prediction_picture`."""

    def draw():
        figure, axes = style.panels(1, width=7.0, height=2.4)
        _draw_numbers(axes[0], result.reward[0], result.predicted_reward)
        _mark_context(axes[0], result.context, ahead, len(result.reward[0]))
        _explain(figure, axes[0])
        style.note(figure, _axis_note(result.context, ahead))
        return figure

    text = f"{_foreseen(result)} The same for the rewards."
    return style.Picture(
        f"{prefix}open_loop_reward", "Open loop: reward", text, draw
    )


def _foreseen(result):
    steps = result.reward.shape[1]
    return (
        f"The model observes {result.context} steps (shaded), then predicts "
        f"{steps - result.context} steps from the recorded actions alone."
    )


def _axis_note(context, ahead):
    return (
        f"agent steps; {context} observed (shaded), then predicted; dotted: "
        f"how far the actor imagines ({ahead} steps)"
    )


def _draw_numbers(axes, truth, futures):
    steps = np.arange(len(truth))
    low, high = np.quantile(futures, [0.1, 0.9], axis=0)
    truth = np.where(np.isfinite(truth), truth, np.nan)
    axes.fill_between(steps, low, high, color="C0", alpha=0.25, lw=0)
    axes.plot(steps, futures.mean(axis=0), color="C0", label="predicted")
    axes.plot(steps, truth, color=style.loud(), lw=1.1, label="observed")
    _widen(axes)


def _widen(axes):
    """Keeps tiny errors of a constant from filling the panel."""
    low, high = axes.get_ylim()
    missing = 0.1 * max(abs(low), abs(high)) - (high - low)
    if missing > 0:
        axes.set_ylim(low - missing / 2, high + missing / 2)


def _draw_classes(axes, truth, futures):
    """Shows `(R, T, C)` probabilities as colours, the truth as a line."""
    probs = futures.mean(axis=0).T
    axes.imshow(
        probs,
        origin="lower",
        aspect="auto",
        interpolation="nearest",
        cmap="Blues" if _is_light() else "cividis",
        vmin=0,
        vmax=1,
    )
    axes.grid(False)
    missing = np.where(truth < 0, np.nan, truth)
    axes.step(np.arange(len(truth)), missing, where="mid", color="C1", lw=1.3)
    axes.set_ylim(-0.5, len(probs) - 0.5)


def _is_light():
    return style.loud() == style.THEMES["light"]["text"]


def _mark_context(axes, context, ahead, steps):
    axes.axvspan(-0.5, context - 0.5, color=style.quiet(), alpha=0.18, lw=0)
    if context + ahead < steps:
        axes.axvline(context + ahead - 0.5, color=style.quiet(), ls=":", lw=1)
    axes.set_xlim(-0.5, steps - 0.5)


def _explain(figure, axes):
    lines = axes.get_legend_handles_labels()
    figure.legend(*lines, loc="outside upper right", ncols=2)


def errors_picture(result, leaves, ahead, prefix):
    """Returns the `Picture` of the errors of all keys.

    Args:
        result: `OpenLoop` of different windows.
        leaves: dict of the `Leaf` of each key.
        ahead: int. Steps that the actor imagines.
        prefix: str, that the file begins with.
    """
    found = errors.prediction_errors(result, leaves)

    def draw():
        figure, axes = style.panels(len(found), 4, 2.7, 1.9)
        for one, (key, error) in zip(axes, found.items(), strict=True):
            steps = np.arange(1, len(error.model) + 1)
            one.plot(steps, error.model, color="C0", label="world model")
            one.plot(
                steps,
                error.hold,
                color=style.quiet(),
                ls="--",
                label="last observation kept",
            )
            if ahead < len(steps):
                one.axvline(ahead, color=style.quiet(), ls=":", lw=1)
            one.set_title(key, loc="left")
            one.set_ylim(bottom=0)
        _explain(figure, axes[0])
        style.note(figure, "agent steps after the last observed one")
        return figure

    text = (
        f"Over {len(result.reward)} windows of the recording. Numbers: root "
        "mean squared error, in standard deviations of what was observed. "
        "Classes: mean probability of the wrong ones. Dashed: the error of "
        "predicting that nothing changes."
    )
    return style.Picture(
        f"{prefix}open_loop_errors", "Open loop: errors", text, draw
    )
