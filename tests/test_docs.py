"""Holds README and documentation to the code: blocks, names, commands."""

import ast
import contextlib
import dataclasses
import functools
import inspect
import io
import pathlib
import re
import shlex
import textwrap

import pytest

import keras_dreamer
import keras_dreamer.distributions
from keras_dreamer.config import RECIPES
from keras_dreamer.models.terms import metric_names

ROOT = pathlib.Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in [ROOT / "README.md", *DOCS.rglob("*.md")]
)
FENCE = re.compile(
    r"(<!-- run -->\n)?^( *)```(\w+)\n(.*?)^\2```$", re.MULTILINE | re.DOTALL
)
# What the pages call the objects of a run.
INSTANCES = {
    "model": keras_dreamer.Dreamer,
    "replay": keras_dreamer.replay.Replay,
    "driver": keras_dreamer.Driver,
    "policy": keras_dreamer.Policy,
    "config": keras_dreamer.Config,
}


def blocks(page, language):
    """Returns pairs of the marker's text, or "", and the block's."""
    text = (ROOT / page).read_text()
    return [
        (marker, textwrap.dedent(code))
        for marker, _, found, code in FENCE.findall(text)
        if found == language
    ]


RUN = [
    page
    for page in PAGES
    if any(marker for marker, _ in blocks(page, "python"))
]


def named(node):
    """Returns the object of the package that an expression names."""
    name = ast.unparse(node)
    if re.fullmatch(r"(kd|keras_dreamer)(\.\w+)+", name):
        return functools.reduce(getattr, name.split(".")[1:], keras_dreamer)
    return None


def callee(node):
    """Returns what is called, and whether it takes a `self`."""
    found = named(node)
    if inspect.isclass(found):
        return found.__init__, True
    parts = ast.unparse(node).split(".")
    if parts[0] in INSTANCES and len(parts) == 2:
        return getattr(INSTANCES[parts[0]], parts[1]), True
    return found, False


def check_call(call):
    function, bound = callee(call.func)
    starred = any(isinstance(x, ast.Starred) for x in call.args) or any(
        keyword.arg is None for keyword in call.keywords
    )
    if function is None or starred:
        return
    keywords = {keyword.arg: None for keyword in call.keywords}
    args = [None] * (len(call.args) + bound)
    inspect.signature(function).bind(*args, **keywords)
    if function is keras_dreamer.Config.__init__:
        fields = {f.name for f in dataclasses.fields(keras_dreamer.Config)}
        assert set(keywords) <= fields, set(keywords) - fields


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks_compile_and_name_what_exists(page):
    for _, code in blocks(page, "python"):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Call):
                check_call(node)
            elif isinstance(node, ast.Attribute):
                named(node)


@pytest.mark.parametrize(
    "code", ["kd.envs.mak()", "kd.Driver(1)", "replay.x()"]
)
def test_wrong_names_and_arguments_are_found(code):
    [call] = [n for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Call)]
    with pytest.raises((AttributeError, ImportError, TypeError)):
        check_call(call)


@pytest.mark.filterwarnings(
    "ignore:.*WARN.*:UserWarning"
)  # Gymnasium's advice.
@pytest.mark.parametrize("page", RUN)
def test_marked_blocks_run(page):
    names = {"__name__": "docs"}
    for marker, code in blocks(page, "python"):
        if marker:
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(code, page, "exec"), names)
            # The page says what is printed.
            for line in printed.getvalue().splitlines():
                assert f"`{line}`" in (ROOT / page).read_text()


def test_blocks_are_found():
    assert "README.md" in RUN and len(blocks("README.md", "python")) >= 3


def commands():
    """Returns the lines that call the command line."""
    lines = [
        line.partition("#")[0].strip()
        for page in PAGES
        for _, code in blocks(page, "bash")
        for line in code.splitlines()
    ]
    return sorted({x for x in lines if x.startswith("keras-dreamer ")})


@pytest.mark.parametrize("command", commands())
def test_commands_parse(command):
    parse = pytest.importorskip("keras_dreamer_cli.commands").parse
    parse(shlex.split(command)[1:])


# `spaces` has a section as a whole.
NAMESPACES = [
    name
    for name in keras_dreamer.__all__
    if inspect.ismodule(getattr(keras_dreamer, name)) and name != "spaces"
]


def public_names():
    """Returns all names that users import, under `keras_dreamer`."""
    found = set()
    for name in [*NAMESPACES, "distributions"]:
        module = getattr(keras_dreamer, name)
        names = getattr(module, "__all__", None) or [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and not inspect.ismodule(value)
        ]
        found |= {f"keras_dreamer.{name}.{x}" for x in names}
    own = set(keras_dreamer.__all__) - set(NAMESPACES) - {"__version__"}
    return found | {f"keras_dreamer.{name}" for name in own}


def test_every_public_name_has_a_place_in_the_api_pages():
    pages = "".join(path.read_text() for path in DOCS.glob("api/*.md"))
    listed = re.findall(r"^::: (\S+)$", pages, re.MULTILINE)
    assert len(set(listed)) == len(listed)
    missing, gone = public_names() - set(listed), set(listed) - public_names()
    assert not missing, f"Add '::: name' to docs/api for {sorted(missing)}."
    assert not gone, f"docs/api lists {sorted(gone)}, which nobody imports."


def run_keys():
    """Returns the keys that `TrainRatio` adds to the logs."""
    tree = ast.parse(inspect.getsource(keras_dreamer.callbacks.train_ratio))
    [function] = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == "_summary"
    ]
    returned = function.body[-1].value
    return [key.value for key in returned.keys]


def test_metrics_page_names_every_key():
    page = (DOCS / "metrics.md").read_text()
    keys = [*metric_names(["<key>"], ["<key>"]), "skipped", *run_keys()]
    assert "updates/s" in keys and "ent/<key>" in keys
    missing = [key for key in keys if f"`{key}`" not in page]
    assert not missing, f"docs/metrics.md does not explain {missing}."


def test_metrics_page_names_no_key_that_is_gone():
    page = (DOCS / "metrics.md").read_text().partition("## Lines of")[0]
    cells = re.findall(r"^\| ([^|]+) \|", page, re.MULTILINE)
    named = {name for cell in cells for name in re.findall("`(.+?)`", cell)}
    keys = [*metric_names(["<key>"], ["<key>"]), "skipped", *run_keys()]
    assert named == set(keys)


def test_recipes_page_has_the_values_of_both():
    page = (DOCS / "recipes.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+)$", page, re.MULTILINE))
    assert set(rows) == set(RECIPES["paper"]) == set(RECIPES["head"])
    for field, row in rows.items():
        cells = [cell.strip(" `") for cell in row.split("|")]
        for recipe, cell in zip(("paper", "head"), cells, strict=False):
            value = RECIPES[recipe][field]
            if not isinstance(value, str):
                cell = ast.literal_eval(cell.replace(",", ""))
            assert cell in (value, f'"{value}"'), (field, recipe)


def test_links_of_the_readme_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)", (ROOT / "README.md").read_text())
    own = [link for link in links if "://" not in link]
    missing = [link for link in own if not (ROOT / link).exists()]
    assert own and not missing, f"README.md links to {missing}."
