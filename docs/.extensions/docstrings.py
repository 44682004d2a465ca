"""Lets mkdocstrings read the package's docstrings as they are written."""

import re
import textwrap

from griffe import Extension

# Griffe takes only indented text for an example.
EXAMPLE = re.compile(r"^Example:\n\n(>>> (?:.+\n?)+)", re.MULTILINE)
# A returned value is described in sentences; Griffe would take the words
# before a colon for its type.
RETURNS = re.compile(r"^(Returns|Yields):\n((?: {4}.*\n?|\n)+)", re.MULTILINE)


def rewrite(text):
    """Returns a docstring with the sections that Griffe knows."""
    text = text.replace("\nCall arguments:\n", "\nOther Args: Call arguments\n")
    text = EXAMPLE.sub(_code, text)
    return RETURNS.sub(_paragraph, text)


def _code(match):
    return f"**Example:**\n\n```pycon\n{match[1].rstrip()}\n```\n"


def _paragraph(match):
    return f"**{match[1]}:** {textwrap.dedent(match[2]).strip()}\n\n"


class Docstrings(Extension):
    """Rewrites the docstring of every object before it is read."""

    def on_instance(self, *, node, obj, agent, **kwargs):
        if obj.docstring:
            obj.docstring.value = rewrite(obj.docstring.value)
