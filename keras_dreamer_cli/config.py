"""`keras-dreamer config`: all settings and where each comes from."""

import inspect
import re

from keras_dreamer.config import RECIPES
from keras_dreamer.config import SIZES
from keras_dreamer.config import Config
from keras_dreamer_cli.presets import resolve

_FIELD = re.compile(r" {4}(\w+): [^#]*(?:# (.*))?")


def run(command):
    """Prints one line per setting: name, value, origin."""
    resolved = resolve(command)
    print(f"{'environments':18} {resolved.envs:<10} preset or --envs")
    print(f"{'dtype':18} {command.dtype or 'float32':<10} --dtype")
    print(f"{'seed':18} {command.seed or 0:<10} --seed")
    found = origins(resolved)
    for name, value in resolved.config.to_dict().items():
        if isinstance(value, dict):
            value = " ".join(f"{k}={v:g}" for k, v in value.items())
        print(f"{name:18} {value!s:<10} {found[name]}")


def origins(resolved):
    """Returns where the value of each field of `Config` comes from.

    Args:
        resolved: `Resolved`.

    Returns:
        Dict from the fields' names to text.
    """
    size, recipe = resolved.config.size, resolved.config.recipe
    own = "our own, for CPUs" if size == "small" else "item 2.1"
    code = {"paper": "2411f7d with 29eb964", "head": "e3f0224"}[recipe]
    return {
        **comments(),
        **dict.fromkeys(SIZES[size], f"size {size} ({own})"),
        **dict.fromkeys(
            RECIPES[recipe], f"recipe {recipe} (danijar/dreamerv3 at {code})"
        ),
        **resolved.origins,
    }


def comments():
    """Returns the comment of each field in the source of `Config`.

    A field without a comment has that of its section.
    """
    found, section = {}, ""
    for line in inspect.getsource(Config).splitlines():
        if line.startswith("    # "):
            section = line.strip("# ")
        elif match := _FIELD.fullmatch(line):
            found[match[1]] = _joined(match[2], section)
        elif line.startswith("    def "):
            break
    return found


def _joined(comment, section):
    if comment and re.search(r"\w+\.(yaml|py):|published|codes", comment):
        return comment
    return f"{comment or ''} ({section.rstrip('.')})".strip()
