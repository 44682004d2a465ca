"""A report as one HTML file that needs nothing else."""

import base64
import html

from keras_dreamer_cli.plots import style

_STYLE = """
:root { color-scheme: light dark; --text: #1f2933; --quiet: #5d6975;
  --line: #d5dbe1; --page: #f5f6f8; --card: #ffffff; --mark: #fff4d6;
  --accent: #1f6feb; }
@media (prefers-color-scheme: dark) { :root { --text: #e6e9ee;
  --quiet: #9aa5b1; --line: #323a44; --page: #0f1216; --card: #171b21;
  --mark: #3a3016; --accent: #6aa9ff; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto,
  "Liberation Sans", Arial, sans-serif; }
main { max-width: 70rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { margin: 0 0 .25rem; font-size: 1.9rem; line-height: 1.2; }
h2 { margin: 2.75rem 0 .75rem; font-size: 1.3rem; }
h3 { margin: 0 0 .35rem; font-size: 1.05rem; }
p { margin: 0 0 .75rem; }
a { color: var(--accent); }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1.1rem; margin-top: 1rem; }
.quiet { color: var(--quiet); }
.numbers { display: grid; gap: .75rem; margin: 1.5rem 0 0;
  grid-template-columns: repeat(auto-fit, minmax(10rem, 1fr)); }
.numbers div, figure, .table { background: var(--card);
  border: 1px solid var(--line); border-radius: .6rem; }
.numbers div { padding: .8rem 1rem; }
.numbers dt { color: var(--quiet); font-size: .85rem; }
.numbers dd { margin: 0; font-size: 1.35rem; font-weight: 600;
  font-variant-numeric: tabular-nums; }
figure { margin: 0 0 1.25rem; padding: 1rem 1.1rem; }
figure img { display: block; max-width: 100%; height: auto;
  margin: .75rem auto 0; }
figcaption { color: var(--quiet); font-size: .92rem; }
.table { overflow-x: auto; margin: 0 0 1.25rem; }
table { border-collapse: collapse; width: 100%; font-size: .92rem;
  font-variant-numeric: tabular-nums; }
th, td { padding: .26rem .9rem; text-align: left; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
td:last-child { white-space: normal; }
th { color: var(--quiet); font-weight: 600; }
tr:last-child td { border-bottom: 0; }
tr.marked td { background: var(--mark); }
code { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono",
  monospace; font-size: .9em; }
details summary { cursor: pointer; margin-bottom: .75rem; }
@media print { figure, .table { break-inside: avoid; } }
"""


def page(title, subtitle, numbers, sections):
    """Returns a page.

    Args:
        title: str.
        subtitle: str.
        numbers: dict of strings, shown large.
        sections: list of pairs of a heading and a list of blocks, HTML that
            the functions of this module return.

    Returns:
        str, the HTML of the whole file.
    """
    tiles = "".join(
        f"<div><dt>{_text(name)}</dt><dd>{_text(value)}</dd></div>"
        for name, value in numbers.items()
    )
    links = "".join(
        f'<a href="#s{index}">{_text(heading)}</a>'
        for index, (heading, _) in enumerate(sections)
    )
    body = "".join(
        f'<section id="s{index}"><h2>{_text(heading)}</h2>{"".join(blocks)}'
        "</section>\n"
        for index, (heading, blocks) in enumerate(sections)
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{_text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f'<body>\n<main>\n<header><h1>{_text(title)}</h1>\n<p class="quiet">'
        f'{_text(subtitle)}</p>\n<dl class="numbers">{tiles}</dl>\n'
        f"<nav>{links}</nav></header>\n{body}</main>\n</body>\n</html>\n"
    )


def figure(picture, images):
    """Returns a picture with its heading and text.

    Args:
        picture: `Picture`.
        images: dict of the PNG bytes of each theme.
    """
    light, dark = (_data(images[theme]) for theme in style.THEMES)
    title, text = _text(picture.title), _text(picture.text)
    width = _width(images["light"])
    return (
        f"<figure><h3>{title}</h3><figcaption>{text}</figcaption><picture>"
        f'<source media="(prefers-color-scheme: dark)" srcset="{dark}">'
        f'<img alt="{title}. {text}" width="{width}" src="{light}">'
        "</picture></figure>"
    )


def table(content):
    """Returns a `Table`."""
    head = "".join(f"<th>{_text(name)}</th>" for name in content.head)
    rows = "".join(
        f"<tr{_mark(index in content.marked)}>"
        + "".join(f"<td>{_text(cell)}</td>" for cell in row)
        + "</tr>"
        for index, row in enumerate(content.rows)
    )
    return (
        f'<div class="table"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def paragraph(text):
    """Returns a paragraph of plain text."""
    return f"<p>{_text(text)}</p>"


def folded(summary, block):
    """Returns a block that opens by a click."""
    return f"<details><summary>{_text(summary)}</summary>{block}</details>"


def _mark(marked):
    return ' class="marked"' if marked else ""


def _width(png):
    """Returns the width at which text has the size that it was drawn with.

    A PNG file has its width in bytes 16 to 19.
    """
    return round(int.from_bytes(png[16:20], "big") * 96 / style.DPI)


def _data(png):
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def _text(text):
    return html.escape(str(text))
