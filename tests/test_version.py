import pathlib
import re
import tomllib

from keras_dreamer.version import __version__

ROOT = pathlib.Path(__file__).parents[1]


def test_version_is_a_release_or_a_development_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+)?", __version__)


def test_the_citation_names_this_version():
    text = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {__version__}\n" in text


def test_every_package_is_built_and_typed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    targets = project["tool"]["hatch"]["build"]["targets"]
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    packages.remove("benchmarks")  # Runs from the sources.
    assert set(targets["wheel"]["packages"]) == packages
    for package in packages:
        assert (ROOT / package / "py.typed").exists(), package
        assert f"/{package}" in targets["sdist"]["include"]
