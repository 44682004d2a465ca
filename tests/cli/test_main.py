import subprocess
import sys

import keras
import pytest

from keras_dreamer.envs import sources
from keras_dreamer_cli.main import main

BACKEND = keras.backend.backend()
OTHER = "torch" if BACKEND == "jax" else "jax"


def test_runs_the_command(capsys):
    pytest.importorskip("tyro")
    assert main(["config", "gym:CartPole-v1"]) == 0
    assert "preset gym-small" in capsys.readouterr().out


def test_errors_are_one_message_without_a_traceback(capsys, tmp_path):
    pytest.importorskip("tyro")
    assert main(["evaluate", str(tmp_path)]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("keras-dreamer: The folder of a run is required")


def test_ctrl_c_leaves_no_traceback(monkeypatch, capsys):
    pytest.importorskip("tyro")

    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(
        sys.modules[main.__module__], "choose_backend", interrupt
    )
    assert main(["info"]) == 130
    assert capsys.readouterr().err == "keras-dreamer: interrupted\n"


def test_packages_that_are_missing_are_one_message(monkeypatch, capsys):
    pytest.importorskip("tyro")

    def fail(*args, **kwargs):
        raise ImportError("install keras-dreamer[dmc]", **kwargs)

    monkeypatch.setattr(sources, "suite_task", fail)
    assert main(["train", "dmc:walker_walk"]) == 2
    printed = capsys.readouterr().err
    assert printed == "keras-dreamer: install keras-dreamer[dmc]\n"
    # What Python itself cannot import is a bug to see.
    monkeypatch.setattr(
        sources, "suite_task", lambda *_: fail("keras", name="keras")
    )
    with pytest.raises(ImportError):
        main(["train", "dmc:walker_walk"])


def test_a_reader_that_has_enough_is_no_error():
    pytest.importorskip("tyro")
    command = f"{sys.executable} -m keras_dreamer_cli envs"
    result = subprocess.run(
        f"{command} | true", shell=True, capture_output=True, text=True
    )
    assert "Error" not in result.stderr


def test_missing_tyro_is_named(monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "keras_dreamer_cli.commands", False)
    monkeypatch.setitem(sys.modules, "tyro", None)
    assert main(["info"]) == 2
    assert 'pip install "keras-dreamer[cli]"' in capsys.readouterr().err


def test_backends_that_disagree_are_refused(monkeypatch, capsys):
    pytest.importorskip("tyro")
    monkeypatch.setenv("KERAS_BACKEND", BACKEND)
    assert main(["info", "--backend", OTHER]) == 2
    assert "must agree" in capsys.readouterr().err


def test_the_module_can_be_run():
    pytest.importorskip("tyro")
    result = subprocess.run(
        [sys.executable, "-m", "keras_dreamer_cli", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "keras-dreamer" in result.stdout and "train" in result.stdout
