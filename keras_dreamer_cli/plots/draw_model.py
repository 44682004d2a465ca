"""What a world model foresees, imagines and keeps in its latents."""

import numpy as np

from keras_dreamer_cli.plots import errors
from keras_dreamer_cli.plots import style

MOST = 16  # Panels of one key.


def model_pictures(inspected, prefix=""):
    """Returns the `Picture`s of an inspected agent.

    Args:
        inspected: `Inspected`.
        prefix: str, that files begin with.
    """
    leaves = inspected.model.observation_leaves
    ahead = inspected.model.config.imag_length
    return [
        *(
            _prediction_picture(inspected.futures, leaf, ahead, prefix)
            for leaf in leaves.values()
        ),
        _reward_picture(inspected.futures, ahead, prefix),
        _errors_picture(inspected.windows, leaves, ahead, prefix),
        _returns_picture(inspected.returns, prefix),
        _latents_picture(inspected.usage, prefix),
    ]


def _prediction_picture(result, leaf, ahead, prefix):
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


def _reward_picture(result, ahead, prefix):
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


def _errors_picture(result, leaves, ahead, prefix):
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


def _returns_picture(returns, prefix):
    known = returns.valid & (returns.estimated < 0.5)
    # Short recordings have estimated returns only.
    shown = known if known.any() else returns.valid
    real, imagined = returns.real[shown], returns.imagined[shown]
    bias = float(np.mean(imagined - real))
    text = (
        "Each dot is a recorded state: the return that the agent imagines "
        "from it under its policy (the actor's target), over the discounted "
        "rewards that followed. Where a recording or a time limit cut them, "
        "the critic's value stands for the rest"
        + (
            "; states where it weighs half or more are left out."
            if known.any()
            else "."
        )
        + f" Mean difference {bias:+.3g}{_correlation(real, imagined)}."
    )

    def draw():
        figure, axes = style.panels(2, 2, 4.6, 3.2)
        dots = axes[0].scatter(
            real,
            imagined,
            c=returns.estimated[shown],
            s=6,
            cmap="viridis",
            vmin=0,
            vmax=1,
            lw=0,
        )
        bar = figure.colorbar(dots, ax=axes[0])
        bar.set_label("weight of the critic's estimate")
        axes[0].axline(
            (real.mean(), real.mean()), slope=1, color=style.quiet(), lw=1
        )
        axes[0].set_xlabel("real discounted return")
        axes[0].set_ylabel("imagined return")
        _draw_along(axes[1], returns)
        return figure

    return style.Picture(
        f"{prefix}imagined_returns", "Imagined and real returns", text, draw
    )


def _draw_along(axes, returns):
    valid = returns.valid[0]
    for values, colour, label in (
        (returns.real[0], style.loud(), "real"),
        (returns.imagined[0], "C0", "imagined"),
    ):
        line = np.where(valid, values, np.nan)
        axes.plot(line, color=colour, lw=1.1, label=label)
    axes.set_xlabel("agent steps of one environment")
    axes.set_title("along a recording", loc="left")
    axes.legend()


def _correlation(one, other):
    if min(one.std(), other.std()) < 1e-9:
        return ""
    return f", correlation {np.corrcoef(one, other)[0, 1]:.3f}"


def _latents_picture(usage, prefix):
    latents, classes = usage.share.shape
    order = np.argsort(-usage.effective)
    share = np.sort(usage.share[order], axis=1)[:, ::-1]

    def draw():
        figure, axes = style.panels(3, 3, 3.4, 3.2)
        shown = axes[0].imshow(
            share.T, aspect="auto", origin="lower", cmap="viridis", vmin=0
        )
        figure.colorbar(shown, ax=axes[0]).set_label("share")
        axes[0].set_ylabel("class")
        axes[0].grid(False)
        rank = np.arange(latents)
        axes[1].bar(rank, usage.used[order], color="C0", width=0.8)
        axes[1].plot(rank, usage.effective[order], "o", color="C1", ms=3)
        axes[1].set_title("classes in use; dots: effective", loc="left")
        axes[1].set_ylim(0, classes + 0.5)
        axes[2].plot(
            rank, usage.prior_entropy[order], ".", color="C0", label="prior"
        )
        axes[2].plot(
            rank,
            usage.posterior_entropy[order],
            ".",
            color="C1",
            label="posterior",
        )
        axes[2].axhline(np.log(classes), color=style.quiet(), ls=":", lw=1)
        axes[2].set_title("entropy (nats); dotted: largest", loc="left")
        axes[2].set_ylim(bottom=0)
        axes[2].legend()
        for one in axes:
            one.set_xlabel("latent")
        return figure

    text = _latents_text(usage)
    return style.Picture(f"{prefix}latents", "Use of the latents", text, draw)


def _latents_text(usage):
    latents, classes = usage.share.shape
    return (
        f"{latents} latents of {classes} classes, ordered by how many classes "
        "they use. Left: how often each class was chosen, the most frequent "
        "first. Middle: classes in use (chosen at least a tenth as often as if "
        f"all were chosen equally often), on average {usage.used.mean():.1f}; "
        "as an effective number (exponential of the entropy) "
        f"{usage.effective.mean():.1f}. Right: entropy before and after the "
        f"observation is known, {usage.prior_entropy.sum():.1f} and "
        f"{usage.posterior_entropy.sum():.1f} nats in total; at most "
        f"{latents * np.log(classes):.1f}."
    )
