"""No process is left behind, however a run ends: trial T33."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

SCRIPT = pathlib.Path(__file__).parent / "orphans.py"
PROC = pathlib.Path("/proc")
WORKERS = 1 + 2 + 16

pytestmark = pytest.mark.skipif(
    not (PROC / "self/stat").exists(), reason="looks into /proc"
)


def processes(session):
    """Returns the ids of a session's processes that are not dead."""
    found = []
    for path in PROC.glob("[0-9]*/stat"):
        try:
            state, _, _, own = path.read_text().rpartition(")")[2].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(own) == session and state != "Z":
            found.append(int(path.parent.name))
    return found


@pytest.fixture
def start():
    """Starts the script in a session of its own."""
    runs = []

    def start(fault):
        paths = [SCRIPT.parents[1], SCRIPT.parents[2]]
        run = subprocess.Popen(
            [sys.executable, str(SCRIPT), fault],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        runs.append(run)
        assert run.stdout.readline() == "fitting\n", run.stderr.read()
        return run

    yield start
    for run in runs:
        for process in processes(run.pid):
            os.kill(process, signal.SIGKILL)
        run.communicate()


def wait_for_none(session, seconds=20):
    end = time.monotonic() + seconds
    while left := processes(session):
        assert time.monotonic() < end, f"left behind: {left}"
        time.sleep(0.1)


def test_ctrl_c_in_fit(start):
    run = start("none")
    time.sleep(0.5)
    assert len(processes(run.pid)) > WORKERS
    os.killpg(run.pid, signal.SIGINT)  # A terminal sends it to all of them.
    out, err = run.communicate(timeout=30)
    assert (out, run.returncode) == ("returned\n", 0), err
    assert "Traceback" not in err
    wait_for_none(run.pid)


def test_kill_of_the_parent(start):
    run = start("none")
    time.sleep(0.5)
    assert len(processes(run.pid)) > WORKERS
    os.kill(run.pid, signal.SIGKILL)
    wait_for_none(run.pid)
    assert "Traceback" not in run.stderr.read()


def test_error_in_fit(start):
    run = start("raise")
    out, err = run.communicate(timeout=30)
    assert (out, run.returncode) == ("", 1)
    assert "Environment 0 raised Stubborn in its process" in err
    wait_for_none(run.pid)
