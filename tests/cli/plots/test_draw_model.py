import types

import numpy as np

from keras_dreamer.inspection.latents import LatentUsage
from keras_dreamer.inspection.open_loop import OpenLoop
from keras_dreamer.inspection.returns import Returns
from keras_dreamer.spaces import Leaf
from keras_dreamer_cli.plots.draw_model import model_pictures

STEPS, CONTEXT, FUTURES = 8, 3, 5
LEAVES = {
    "x/y": Leaf("x/y", "continuous", (3,)),
    "wide": Leaf("wide", "continuous", (20,)),
    "mode": Leaf("mode", "discrete", (), (4,)),
}
RNG = np.random.default_rng(0)


def open_loop():
    lead = (FUTURES, STEPS)
    return OpenLoop(
        CONTEXT,
        {
            "x/y": RNG.normal(size=(*lead, 3)),
            "wide": RNG.normal(size=(*lead, 20)),
            "mode": np.full((*lead, 4), 0.25),
        },
        {
            "x/y": RNG.normal(size=(*lead, 3)),
            "wide": RNG.normal(size=(*lead, 20)),
            "mode": RNG.integers(4, size=lead),
        },
        RNG.normal(size=lead),
        RNG.normal(size=lead),
        np.ones(lead, bool),
    )


def inspected(estimated=0.0):
    real = RNG.normal(size=(2, 7))
    return types.SimpleNamespace(
        model=types.SimpleNamespace(
            observation_leaves=LEAVES,
            config=types.SimpleNamespace(imag_length=2),
        ),
        futures=open_loop(),
        windows=open_loop(),
        returns=Returns(
            real + 1, real, np.full((2, 7), estimated), np.ones((2, 7), bool)
        ),
        usage=LatentUsage(np.full((6, 4), 0.25), np.ones(6), np.ones(6)),
    )


def pictures(**kwargs):
    data = inspected(**kwargs)
    return data, {picture.name: picture for picture in model_pictures(data)}


def test_every_key_has_a_picture_and_all_can_be_drawn():
    _, found = pictures()
    assert list(found) == [
        "open_loop_x_y",
        "open_loop_wide",
        "open_loop_mode",
        "open_loop_reward",
        "open_loop_errors",
        "imagined_returns",
        "latents",
    ]
    for picture in found.values():
        assert picture.draw().axes


def test_predictions_beside_the_truth_with_the_context_marked():
    data, found = pictures()
    figure = found["open_loop_x_y"].draw()
    titles = [axes.get_title("left") for axes in figure.axes[:3]]
    assert titles == ["x/y[0]", "x/y[1]", "x/y[2]"]
    axes = figure.axes[1]
    drawn = {line.get_label(): line.get_ydata() for line in axes.lines}
    result = data.futures
    np.testing.assert_allclose(drawn["observed"], result.truth["x/y"][0, :, 1])
    np.testing.assert_allclose(
        drawn["predicted"], result.prediction["x/y"][..., 1].mean(0)
    )
    (shaded,) = axes.patches
    assert shaded.get_x() + shaded.get_width() == CONTEXT - 0.5
    # How far the actor imagines: 2 steps after the context.
    assert axes.lines[-1].get_xdata()[0] == CONTEXT + 2 - 0.5


def test_a_constant_does_not_look_like_noise():
    data = inspected()
    data.futures.reward[:] = 1.0
    data.futures.predicted_reward[:] = 1.0 + 1e-4 * RNG.normal(size=(5, 8))
    found = {p.name: p for p in model_pictures(data)}
    low, high = found["open_loop_reward"].draw().axes[0].get_ylim()
    assert high - low > 0.09


def test_wide_keys_show_their_first_numbers():
    _, found = pictures()
    figure = found["open_loop_wide"].draw()
    assert sum(axes.axison for axes in figure.axes) == 16
    assert "first 16 of 20" in found["open_loop_wide"].text


def test_classes_are_shown_as_probabilities():
    data, found = pictures()
    (axes,) = found["open_loop_mode"].draw().axes
    assert axes.images[0].get_array().shape == (4, STEPS)
    line = axes.lines[0]
    np.testing.assert_allclose(line.get_ydata(), data.futures.truth["mode"][0])


def test_returns_that_are_mostly_estimated_are_left_out():
    data, found = pictures()
    data.returns.estimated[0] = 0.9
    picture = {p.name: p for p in model_pictures(data)}["imagined_returns"]
    dots = picture.draw().axes[0].collections[0].get_offsets()
    assert len(dots) == 7
    assert "Mean difference +1" in picture.text
    assert "left out" in picture.text
    # Unless there are no others.
    _, found = pictures(estimated=0.9)
    figure = found["imagined_returns"].draw()
    assert len(figure.axes[0].collections[0].get_offsets()) == 14


def test_latents_say_how_many_classes_are_in_use():
    _, found = pictures()
    assert "on average 4.0" in found["latents"].text
    figure = found["latents"].draw()
    assert [bar.get_height() for bar in figure.axes[1].patches] == [4] * 6
