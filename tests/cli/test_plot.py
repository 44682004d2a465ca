import pytest
import runs
from inspected import make_inspected

from keras_dreamer_cli import plot
from keras_dreamer_cli.main import main
from keras_dreamer_cli.plots import style

LOG = (
    runs.episode(20, 5.0),
    runs.epoch(24, 0.5),
    runs.episode(40, 7.0),
    runs.epoch(48, 0.4),
)


@pytest.fixture
def quick(monkeypatch):
    """Draws small pictures."""
    pytest.importorskip("tyro")
    monkeypatch.setattr(style, "DPI", 20)


def png_files(folder):
    return {path.stem for path in folder.glob("*.png")}


def test_a_run_with_an_agent(quick, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(plot, "inspect", lambda run: make_inspected())
    runs.write_log(tmp_path, runs.start(), *LOG)
    assert main(["plot", str(tmp_path), "--env", "dmc:walker_walk"]) == 0
    assert "report.html" in capsys.readouterr().out
    found = png_files(tmp_path / "plots")
    names = {"returns", "losses", "metrics", "imagined_returns", "latents"}
    assert names <= found
    assert {"open_loop_reward", "open_loop_errors"} <= found
    report = (tmp_path / "plots" / "report.html").read_text()
    assert report.count("<figure>") == len(found)
    assert report.count("data:image/png") == 2 * len(found)
    for text in ("dmc:walker_walk", "agent.keras on data", "loss_scales/rec"):
        assert text in report


def test_several_runs_without_agents(quick, tmp_path, capsys):
    for name, seed, rate in (("a", 0, 1.0), ("b", 1, 1.0), ("c", 0, 2.0)):
        runs.write_log(tmp_path / name, runs.start(seed=seed, lr=rate), *LOG)
    folders = [str(tmp_path / name) for name in "abc"]
    assert main(["plot", *folders, "--out", str(tmp_path / "out")]) == 0
    assert png_files(tmp_path / "out") == {"returns", "losses", "metrics"}
    printed = capsys.readouterr().out
    assert "lr 1: 2 runs" in printed and "lr 2: 1 runs" in printed
    assert "no pictures of the world model" in printed
    report = (tmp_path / "out" / "report.html").read_text()
    assert "A saved agent is required" in report


def test_folders_of_the_figures(tmp_path):
    assert plot.default_out([tmp_path / "a"]) == tmp_path / "a" / "plots"
    several = [tmp_path / "x" / "a", tmp_path / "y" / "b"]
    assert plot.default_out(several) == tmp_path / "plots"


def test_no_folder_is_an_error(quick, capsys):
    assert main(["plot"]) == 2
    assert "at least one run" in capsys.readouterr().err


def test_a_folder_without_log_is_an_error(quick, tmp_path, capsys):
    assert main(["plot", str(tmp_path)]) == 2
    assert "holds no log.jsonl" in capsys.readouterr().err
