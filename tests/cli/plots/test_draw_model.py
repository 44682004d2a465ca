from inspected import make_inspected

from keras_dreamer_cli.plots.draw_model import model_pictures


def pictures(**kwargs):
    data = make_inspected(**kwargs)
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
