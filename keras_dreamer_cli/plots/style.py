"""How figures look, on light and on dark pages."""

import dataclasses
import io
import textwrap

_LIGHT = {
    "text": "#1f2933",
    "quiet": "#66727f",
    "line": "#d5dbe1",
    "page": "#ffffff",
    "cycle": "#1f6feb #d9480f #0a8f6a #8e3fd1 #c2256e #0b7f9e".split(),
}
_DARK = {
    "text": "#e6e9ee",
    "quiet": "#9aa5b1",
    "line": "#3a424d",
    "page": "#171b21",
    "cycle": "#6aa9ff #ff9f5a #4fd1a1 #c79bff #ff85b8 #5cc9e6".split(),
}
THEMES = {"light": _LIGHT, "dark": _DARK}
DPI = 150


@dataclasses.dataclass(frozen=True)
class Picture:
    """A figure that is yet to be drawn.

    Attributes:
        name: str, of its file.
        title: str, its heading in the report.
        text: str, what it shows and how.
        draw: function `() -> matplotlib.figure.Figure`.
    """

    name: str
    title: str
    text: str
    draw: object


def require_matplotlib():
    """Returns matplotlib, or says how to install it."""
    try:
        import matplotlib
    except ImportError as error:
        raise ValueError(
            "`plot` needs the package matplotlib. Received: "
            f'{error}. Install it with pip install "keras-dreamer[plot]"'
        ) from error
    return matplotlib


def render(picture, theme):
    """Draws a picture.

    Args:
        picture: `Picture`.
        theme: str, "light" or "dark".

    Returns:
        Bytes of a PNG file.
    """
    with require_matplotlib().rc_context(settings(THEMES[theme])):
        figure = picture.draw()
        file = io.BytesIO()
        figure.savefig(file, format="png", dpi=DPI)
    return file.getvalue()


def settings(colours):
    """Returns matplotlib's settings for a set of colours."""
    import cycler

    return {
        "axes.axisbelow": True,
        "axes.edgecolor": colours["line"],
        "axes.facecolor": colours["page"],
        "axes.grid": True,
        "axes.labelcolor": colours["quiet"],
        "axes.labelsize": 9,
        "axes.prop_cycle": cycler.cycler(color=colours["cycle"]),
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlecolor": colours["text"],
        "axes.titlesize": 10,
        "figure.facecolor": colours["page"],
        "font.size": 9,
        "grid.color": colours["line"],
        "grid.linewidth": 0.6,
        "legend.fontsize": 8.5,
        "legend.frameon": False,
        "lines.linewidth": 1.6,
        "savefig.facecolor": colours["page"],
        "text.color": colours["text"],
        "xtick.color": colours["quiet"],
        "xtick.labelsize": 8.5,
        "ytick.color": colours["quiet"],
        "ytick.labelsize": 8.5,
    }


def panels(count, columns=3, width=3.2, height=2.2):
    """Makes a figure of equal panels.

    Args:
        count: int. Number of panels.
        columns: int. Most panels in a row.
        width: float. Width of a panel in inches.
        height: float. Height of a panel in inches.

    Returns:
        The figure and the list of its axes.
    """
    from matplotlib.figure import Figure

    columns = min(columns, count)
    rows = -(-count // columns)
    size = (width * columns, height * rows + 0.35)
    figure = Figure(size, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for spare in axes[count:]:
        spare.set_axis_off()
    return figure, list(axes[:count])


def quiet():
    """Returns the colour of what is beside the matter."""
    return require_matplotlib().rcParams["axes.labelcolor"]


def loud():
    """Returns the colour of text."""
    return require_matplotlib().rcParams["text.color"]


def note(figure, text):
    """Writes a text below a figure."""
    letters = int(17 * figure.get_figwidth())
    figure.supxlabel(
        textwrap.fill(text, letters),
        fontsize=8,
        color=quiet(),
        x=0.01,
        ha="left",
    )


def count_steps(axes):
    """Labels an axis of environment steps with thousands."""
    from matplotlib.ticker import EngFormatter
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))


def file_name(key):
    """Returns the name of a key as a part of a file's name."""
    return "".join(c if c.isalnum() or c in "-_" else "_" for c in key)
