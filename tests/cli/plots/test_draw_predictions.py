import numpy as np
from inspected import CONTEXT
from inspected import RNG
from inspected import STEPS
from inspected import make_inspected

from keras_dreamer_cli.plots.draw_model import model_pictures


def pictures():
    data = make_inspected()
    return data, {picture.name: picture for picture in model_pictures(data)}


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
    data = make_inspected()
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
