"""`keras-dreamer plot`."""

import os
import pathlib

import gymnasium

from keras_dreamer_cli.plots import page
from keras_dreamer_cli.plots import style
from keras_dreamer_cli.plots import tables
from keras_dreamer_cli.plots.draw_curves import losses_picture
from keras_dreamer_cli.plots.draw_curves import metrics_picture
from keras_dreamer_cli.plots.draw_curves import returns_picture
from keras_dreamer_cli.plots.draw_model import model_pictures
from keras_dreamer_cli.plots.groups import group_runs
from keras_dreamer_cli.plots.logs import read_run
from keras_dreamer_cli.plots.recording import inspect

REPORT = "report.html"


def run(command):
    """Draws the runs of a `Plot` command; writes PNG files and the report."""
    if not command.logdirs:
        raise ValueError(
            "`plot` needs the folder of at least one run. Received: none. Give "
            "the --logdir of `keras-dreamer train`."
        )
    style.require_matplotlib()
    runs = [read_run(logdir, command.env) for logdir in command.logdirs]
    groups = group_runs(runs)
    out = command.out or default_out(command.logdirs)
    out.mkdir(parents=True, exist_ok=True)
    curves = [
        picture
        for make in (returns_picture, losses_picture, metrics_picture)
        if (picture := make(groups)) is not None
    ]
    sections = [
        (
            "Results",
            [
                page.table(tables.results(groups)),
                page.paragraph(tables.FINAL),
            ],
        ),
        ("Learning curves", [_write(picture, out) for picture in curves]),
    ]
    for index, group in enumerate(groups):
        sections.append(_world_model(groups, index, out))
        print(f"{group.label}: {len(group.runs)} runs")
    sections += [
        ("Settings", [page.table(tables.settings(groups))]),
        ("Versions", [page.table(tables.versions(groups))]),
    ]
    (out / REPORT).write_text(
        page.page(
            title(groups),
            ", ".join(str(run.logdir) for run in runs),
            numbers(groups),
            sections,
        ),
        encoding="utf-8",
    )
    print(f"Wrote {out / REPORT} and the figures beside it.")


def default_out(logdirs):
    """Returns the folder of the figures: of one run, or beside several."""
    if len(logdirs) == 1:
        return logdirs[0] / "plots"
    parents = [os.path.abspath(logdir.parent) for logdir in logdirs]
    return pathlib.Path(os.path.commonpath(parents)) / "plots"


def title(groups):
    """Returns the title of the report."""
    envs = dict.fromkeys(g.env or g.runs[0].logdir.name for g in groups)
    return ", ".join(envs)


def numbers(groups):
    """Returns what the report shows large, a dict of strings."""
    if len(groups) > 1:
        return {f"return, {g.label}": tables.final_return(g) for g in groups}
    (group,) = groups
    return {
        "final return": tables.final_return(group),
        "seeds": str(len(group.runs)),
        "env steps": f"{max(map(tables.env_steps, group.runs)):,.0f}",
        "time": tables.clock(max(run.seconds for run in group.runs)),
    }


def _world_model(groups, index, out):
    """Returns the section of the first run of a group."""
    group = groups[index]
    first = group.runs[0]
    several = len(groups) > 1
    heading = f"World model: {group.label}" if several else "World model"
    try:
        inspected = inspect(first)
    except (ValueError, OSError, ImportError, gymnasium.error.Error) as error:
        print(f"{first.logdir}: no pictures of the world model: {error}")
        return heading, [page.paragraph(f"No pictures. {error}")]
    prefix = f"{index + 1}_" if several else ""
    source = f"Seed {first.seed}: {inspected.source}."
    pictures = model_pictures(inspected, prefix)
    return heading, [
        page.paragraph(source),
        *(_write(picture, out) for picture in pictures),
    ]


def _write(picture, out):
    """Writes a picture's PNG file; returns its block of the report."""
    images = {theme: style.render(picture, theme) for theme in style.THEMES}
    (out / f"{picture.name}.png").write_bytes(images["light"])
    return page.figure(picture, images)
