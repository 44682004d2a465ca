"""What a world model foresees, imagines and keeps in its latents."""

import numpy as np

from keras_dreamer_cli.plots import style
from keras_dreamer_cli.plots.draw_predictions import errors_picture
from keras_dreamer_cli.plots.draw_predictions import prediction_picture
from keras_dreamer_cli.plots.draw_predictions import reward_picture


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
            prediction_picture(inspected.futures, leaf, ahead, prefix)
            for leaf in leaves.values()
        ),
        reward_picture(inspected.futures, ahead, prefix),
        errors_picture(inspected.windows, leaves, ahead, prefix),
        _returns_picture(inspected.returns, prefix),
        _latents_picture(inspected.usage, prefix),
    ]


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
