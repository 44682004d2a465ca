import ast
import json
import pathlib

import keras
import numpy as np
import pytest
from test_docs import check_call

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(path.name for path in EXAMPLES.glob("*.ipynb"))


def code_cells(name):
    """Returns the sources of the code cells, the installation left out."""
    notebook = json.loads((EXAMPLES / name).read_text())
    cells = [c for c in notebook["cells"] if c["cell_type"] == "code"]
    return ["".join(cell["source"]) for cell in cells[1:]]


def test_there_are_notebooks():
    assert {"cartpole.ipynb", "custom_env.ipynb"} <= set(NOTEBOOKS)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_is_one_without_outputs_that_installs_first(name):
    notebook = json.loads((EXAMPLES / name).read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    cells = [c for c in notebook["cells"] if c["cell_type"] == "code"]
    assert not any(c["outputs"] or c["execution_count"] for c in cells)
    assert '%pip install -q "keras-dreamer[jax]"' in "".join(cells[0]["source"])
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_calls_fit_the_signatures(name):
    for code in code_cells(name):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Call):
                check_call(node)


@pytest.mark.slow  # The notebooks' own networks, which compile for a while.
@pytest.mark.skipif(
    keras.backend.backend() != "jax", reason="the notebooks are for JAX"
)
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_runs(name, monkeypatch, capsys):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    # One or two updates more than none: 16 * 16 + 4 * 16 steps come before.
    monkeypatch.setenv("NOTEBOOK_STEPS", "322")
    names = {"__name__": "notebook"}
    for code in code_cells(name):
        exec(compile(code, name, "exec"), names)
    assert int(names["model"].optimizer.iterations) >= 1
    assert np.isfinite(names["history"].history["loss"]).all()
    assert "Return" in capsys.readouterr().out
