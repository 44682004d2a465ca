import sys

import matplotlib
import pytest

from keras_dreamer_cli.plots import style


def test_renders_in_both_colours():
    seen = []

    def draw():
        figure, (axes,) = style.panels(1)
        axes.plot([0, 1], [0, 1])
        style.count_steps(axes)
        style.note(figure, "below")
        seen.append((style.loud(), style.quiet()))
        return figure

    picture = style.Picture("a", "A", "", draw)
    before = matplotlib.rcParams["text.color"]
    light, dark = (style.render(picture, theme) for theme in style.THEMES)
    assert light[:4] == dark[:4] == b"\x89PNG"
    assert light != dark and seen[0] != seen[1]
    assert matplotlib.rcParams["text.color"] == before


def test_panels():
    figure, axes = style.panels(5, columns=3)
    assert len(axes) == 5 and len(figure.axes) == 6
    assert not figure.axes[5].axison


def test_file_names():
    assert style.file_name("arm/angles.x") == "arm_angles_x"


def test_missing_matplotlib_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ValueError, match=r"keras-dreamer\[plot\]"):
        style.require_matplotlib()
