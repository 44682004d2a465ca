"""Rules about the code itself, so that nobody has to remember them."""

import ast
import functools
import importlib
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[1]
TESTS = ROOT / "tests"
PACKAGE = ROOT / "keras_dreamer"
CLI = ROOT / "keras_dreamer_cli"
MODULES = sorted(
    path.relative_to(ROOT)
    for folder in (PACKAGE, CLI)
    for path in folder.rglob("*.py")
    if path.name not in ("__init__.py", "__main__.py")
)
# The measurements keep the same form; one file tests them.
FILES = sorted(
    path.relative_to(ROOT)
    for folder in (PACKAGE, CLI, ROOT / "benchmarks")
    for path in folder.rglob("*.py")
    if path.name != "__init__.py"
)
MODULE_LINES = 300
FUNCTION_LINES = 45

# The items of the specification: 1.1 to 1.12, 2.1 to 2.17 and so on, and its
# algorithms.
SECTIONS = {1: 12, 2: 17, 3: 20, 4: 9, 5: 11, 6: 5, 7: 7}
ITEMS = [
    *(f"{s}.{i + 1}" for s, items in SECTIONS.items() for i in range(items)),
    *"ABCDEFGHIJK",
]
SOURCE_MAP = ROOT / "docs" / "source_map.md"
# The numbers of the trials; some were given up.
UNUSED = (14, 15, 17, 20, 23, 27, 31)
TRIALS = [f"T{n}" for n in range(1, 36) if n not in UNUSED]
TRIALS_TABLE = ROOT / "docs" / "trials.md"


@functools.cache
def parse(path):
    return ast.parse(path.read_text())


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_module_has_a_test_file(module):
    folders = module.parent.parts
    own = ("cli",) if folders[0] == CLI.name else ()
    folders = (*own, *folders[1:])
    test_file = TESTS.joinpath(*folders, f"test_{module.name}")
    assert test_file.exists(), f"{module} has no tests. Create {test_file}."


@pytest.mark.parametrize("file", FILES, ids=str)
def test_module_imports_no_backend(file):
    if file.parts[1] == "backend":
        return
    imported = set()
    for node in ast.walk(parse(ROOT / file)):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").split(".")[0])
    backends = imported & {"jax", "jaxlib", "torch", "tensorflow"}
    assert not backends, f"{file} imports {backends}. Use `keras.ops`."


@pytest.mark.parametrize("file", FILES, ids=str)
def test_module_is_short(file):
    lines = len((ROOT / file).read_text().splitlines())
    assert lines <= MODULE_LINES, f"{file} has {lines} lines. Split it."


def body_lines(function):
    """Counts the lines of a function below its docstring."""
    body = function.body
    if ast.get_docstring(function) is not None:
        body = body[1:]
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


@pytest.mark.parametrize("file", FILES, ids=str)
def test_functions_are_short(file):
    long = {
        node.name: body_lines(node)
        for node in ast.walk(parse(ROOT / file))
        if isinstance(node, ast.FunctionDef)
        and body_lines(node) > FUNCTION_LINES
    }
    assert not long, f"{file} has functions of too many lines: {long}."


def source_map_rows():
    """Returns {item: (function cell, test cell)} of the table."""
    rows = re.findall(
        r"^\| *([1-7]\.\d+|[A-K])\b[^|]*\|([^|]*)\|([^|]*)\|$",
        SOURCE_MAP.read_text(),
        re.MULTILINE,
    )
    items = [item for item, *_ in rows]
    repeated = {item for item in items if items.count(item) > 1}
    assert not repeated, f"{SOURCE_MAP.name} repeats {sorted(repeated)}."
    return {item: cells for item, *cells in rows}


def names_in(cell):
    return re.findall(r"`([^`]+)`", cell)


def resolve(name):
    """Imports `keras_dreamer.module.object.attribute`."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError as error:
            if not name.startswith(error.name):
                raise
            continue
        for part in parts[end:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(name)


def defined_tests(path):
    return {
        node.name
        for node in ast.walk(parse(ROOT / path))
        if isinstance(node, ast.FunctionDef)
    }


def test_source_map_has_every_item():
    missing = [item for item in ITEMS if item not in source_map_rows()]
    assert not missing, f"{SOURCE_MAP.name} has no row for {missing}."


def test_source_map_rows_name_a_function_and_a_test_or_a_reason():
    for item, (function, test) in source_map_rows().items():
        if function.strip().startswith("—"):  # Left out, for a reason.
            assert len(function.split()) > 3, f"{item}: why is it left out?"
            continue
        assert names_in(function), f"{item} names no function."
        assert names_in(test), f"{item} names no test."


def test_source_map_functions_exist():
    for item, (function, _) in source_map_rows().items():
        for name in names_in(function):
            try:
                resolve(name)
            except (ImportError, AttributeError) as error:
                pytest.fail(f"{item}: {name} does not exist: {error}")


def test_source_map_tests_exist():
    for item, (_, test) in source_map_rows().items():
        for name in names_in(test):
            path, _, function = name.partition("::")
            assert (ROOT / path).is_file(), f"{item}: there is no {path}."
            assert function in defined_tests(path), f"{item}: no {name}."


def trials_rows():
    """Returns {trial: cell of its checks} of the table."""
    rows = re.findall(
        r"^\| *(T\d+)\b[^|]*\|[^|]*\|([^|]*)\|$",
        TRIALS_TABLE.read_text(),
        re.MULTILINE,
    )
    assert len(rows) == len(dict(rows)), f"{TRIALS_TABLE.name} repeats a trial."
    return dict(rows)


def test_trials_are_complete():
    assert list(trials_rows()) == TRIALS


@pytest.mark.parametrize("trial", TRIALS)
def test_trials_are_checked_by_what_exists(trial):
    names = [name for name in names_in(trials_rows()[trial]) if "/" in name]
    assert names, f"{trial} names no test."
    for name in names:
        path, *parts = name.split("::")
        assert (ROOT / path).is_file(), f"{trial}: there is no {path}."
        found = defined_tests(path) if parts else [path]
        assert (parts or [path])[-1] in found, f"{trial}: no {name}."
