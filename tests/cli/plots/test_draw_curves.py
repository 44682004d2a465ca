import numpy as np
import runs

from keras_dreamer_cli.plots import draw_curves
from keras_dreamer_cli.plots.groups import group_runs

PAIR = [
    runs.make_run("a", seed=0, steps=[10, 20], returns=[1.0, 2.0]),
    runs.make_run("b", seed=1, steps=[10, 20], returns=[3.0, 6.0]),
]


def lines(axes):
    """Returns the lines that a legend names."""
    return {
        line.get_label(): line
        for line in axes.lines
        if not line.get_label().startswith("_")
    }


def test_seeds_are_a_mean_with_a_band():
    picture = draw_curves.returns_picture(group_runs(PAIR))
    (axes,) = picture.draw().axes
    (line,) = lines(axes).values()
    assert line.get_label() == "gym:A-v0 (2 seeds)"
    filled = np.isfinite(line.get_ydata())
    # Bins of 1 step: from 10 to 20, interpolated.
    assert line.get_xdata()[filled].tolist() == list(range(10, 21))
    assert line.get_ydata()[filled][[0, -1]].tolist() == [2.0, 4.0]
    (band,) = axes.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (1.0, 6.0)
    assert "band of one standard deviation" in picture.text
    assert "Grey" not in picture.text


def test_published_curves_stand_beside_as_far_as_the_runs_go():
    run = runs.make_run(
        env="dmc:walker_walk", steps=[5_000, 40_000], returns=[10.0, 90.0]
    )
    picture = draw_curves.returns_picture(group_runs([run]))
    (axes,) = picture.draw().axes
    known = lines(axes)["DreamerV3, published (5 seeds)"]
    assert known.get_xdata().tolist() == [10_000, 20_000, 30_000, 40_000]
    assert "MIT" in picture.text
    # A run that goes on beyond its last episode.
    run.epochs["env_steps"] = np.array([5_000.0, 62_000.0])
    (axes,) = draw_curves.returns_picture(group_runs([run])).draw().axes
    known = lines(axes)["DreamerV3, published (5 seeds)"]
    assert known.get_xdata()[-1] == 60_000


def test_a_panel_for_each_environment():
    pair = [*PAIR, runs.make_run("c", env="gym:B-v0")]
    figure = draw_curves.returns_picture(group_runs(pair)).draw()
    titles = [axes.get_title("left") for axes in figure.axes]
    assert titles == ["gym:A-v0", "gym:B-v0"]


def test_losses_have_a_panel_each():
    run = runs.make_run(steps=[10, 20], returns=[1.0, 2.0])
    run.epochs["loss/rew"] = np.array([5.0, 7.0])
    figure = draw_curves.losses_picture(group_runs([run])).draw()
    assert [a.get_title("left") for a in figure.axes[:2]] == ["loss", "rew"]
    (line,) = lines(figure.axes[1]).values()
    filled = np.isfinite(line.get_ydata())
    assert line.get_ydata()[filled][[0, -1]].tolist() == [5.0, 7.0]


def test_further_metrics_have_readable_names():
    run = runs.make_run(steps=[10], returns=[1.0])
    run.epochs.update({"ent/move": np.ones(1), "rep_ent": np.ones(1)})
    figure = draw_curves.metrics_picture(group_runs([run])).draw()
    titles = [axes.get_title("left") for axes in figure.axes[:2]]
    assert titles == [
        "entropy of the posterior (nats)",
        "policy entropy of move (nats)",
    ]


def test_a_run_that_has_just_begun():
    groups = group_runs([runs.make_run()])
    assert draw_curves.losses_picture(groups) is None
    assert draw_curves.metrics_picture(groups) is None
    assert draw_curves.returns_picture(groups).draw().axes
