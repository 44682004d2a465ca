"""`soak`: kills a run again and again, and checks what is left each time."""

import contextlib
import json
import pathlib
import random
import shutil
import signal
import statistics
import sys
import tempfile
import time
import traceback

import keras_dreamer as kd
from benchmarks.soak_checks import Checks
from benchmarks.soak_process import Run
from benchmarks.soak_rows import require

COLUMNS = {
    "backend": "",
    "minutes": "",
    "kills": "",
    "kills_in_saves": "of them while saving",
    "kills_at_start": "while starting",
    "resumes": "",
    "updates": "",
    "agent_steps": "agent steps",
    "episodes": "",
    "rows_checked": "rows checked",
    "first_mb": "memory in the first runs, MB",
    "last_mb": "in the last, MB",
    "growth_percent": "growth in the longest run, %",
    "exit_s": "workers gone after, s",
    "failed": "",
}
CONFIG = {
    "size": "small",
    "deter": 16,
    "hidden": 8,
    "units": 8,
    "stoch": 2,
    "classes": 4,
    "blocks": 2,
    "bins": 15,
    "imglayers": 1,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "policy_layers": 1,
    "value_layers": 1,
    "imag_length": 2,
    "batch_size": 4,
    "batch_length": 8,
    "train_ratio": 16.0,
}
_SAMPLES = 10  # Of the memory of a run, before it counts.
_GROWTH = 5.0  # Percent that memory may grow by in the second half of a run.


class Soak:
    """Kills a run for a while.

    Args:
        case: dict, what `measure` gets.
        folder: `pathlib.Path` of an empty folder.
    """

    def __init__(self, case, folder):
        self.case = case
        self.folder = folder
        self.rng = random.Random(case["seed"])  # noqa: S311
        config = kd.Config(**CONFIG)
        rate = config.train_ratio / (config.batch_size * config.batch_length)
        self.task = {
            "config": CONFIG,
            "rate": rate,
            "envs": case["envs"],
            "seed": case["seed"],
            "capacity": case["capacity"],
            "every": case["every"],
        }
        self.checks = Checks(folder, config, case["capacity"], rate)
        self.kills = {"start": 0, "training": 0, "saving": 0}
        self.resumes = 0
        self.memory = []  # MB of each run at its end.
        self.exits = [0.0]
        self.growth = None
        self._run = None
        self._start = 10.0  # Seconds from a start to the first update.
        self._old = set()  # Unfinished checkpoints of earlier runs.
        (folder / "witness.jsonl").touch()

    def run(self):
        """Runs until the time is over; raises `Violation`."""
        begin, minutes = time.monotonic(), self.case["minutes"]
        while time.monotonic() - begin < 0.85 * 60 * minutes:
            self._kill_one()
        last = self._begin()
        last.watch(max(5.0, 0.1 * 60 * minutes), trains=True)
        self._finish(signal.SIGINT, "ended")
        self.growth = growth(last.memory)
        require(
            self.growth is None or self.growth < _GROWTH,
            f"memory grows by {self.growth} % in one run: {last.memory}",
        )

    def row(self):
        """Returns what was found."""
        quarter = max(1, len(self.memory) // 4)
        first, last = self.memory[:quarter], self.memory[-quarter:]
        counters = self.checks.counters
        return {
            "kills": sum(self.kills.values()),
            "kills_in_saves": self.kills["saving"],
            "kills_at_start": self.kills["start"],
            "resumes": self.resumes,
            "updates": counters["updates"],
            "agent_steps": counters["step"],
            "env_steps": counters["env_steps"],
            "episodes": self.checks.episodes,
            "checkpoint": self.checks.newest and self.checks.newest.name,
            "rows_checked": self.checks.rows_checked,
            "windows_checked": self.checks.windows_checked,
            "first_mb": statistics.median(first) if first else None,
            "last_mb": statistics.median(last) if last else None,
            "growth_percent": self.growth,
            "exit_s": max(self.exits),
        }

    def _begin(self):
        resume = self.checks.newest is not None
        self.resumes += resume
        self.checks.begin()
        task = {**self.task, "resume": resume, "mapped": self._chance(0.5)}
        (self.folder / "task.json").write_text(json.dumps(task))
        self._old = self._unfinished()
        self._run = Run(self.folder)
        return self._run

    def stop(self):
        """Ends what is still running after a failure."""
        if self._run is not None and self._run.process.poll() is None:
            self._run.process.kill()

    def _kill_one(self):
        run = self._begin()
        if self.checks.newest is not None and self._chance(0.15):
            run.watch(self.rng.uniform(0, 1.2 * self._start))
        elif self._chance(0.5):
            run.watch(self._seconds(0.2, 60.0), trains=True)
        else:
            run.watch(self._seconds(0.2, 15.0), trains=True)
            run.watch(30.0, until=self._saving)
            time.sleep(self.rng.uniform(0, 0.1))
        if run.trains_since:
            self._start = run.trains_since - run.start
        self._finish(signal.SIGKILL, "killed")

    def _finish(self, signum, how):
        run = self._run
        seconds = time.monotonic() - run.start
        self.exits.append(run.end(signum))
        moment = "training" if run.trains_since else "start"
        moment = "saving" if self._saving() else moment
        if signum == signal.SIGKILL:
            self.kills[moment] += 1
        self._check_temporary()
        self.checks.check()
        memory = run.memory[-1] if run.memory else 0.0
        if len(run.memory) >= _SAMPLES and self.resumes:
            self.memory.append(memory)  # The first run compiles, too.
        print(
            f"{how} after {seconds:.1f} s, {moment}: {self.checks.counters}, "
            f"{memory:.0f} MB",
            flush=True,
        )

    def _check_temporary(self):
        """Removes the empty folders that a kill leaves in TMPDIR.

        One is of Python's fork server, one of Keras while it saves or loads.
        """
        left = list((self.folder / "tmp").iterdir())
        names = [path.name for path in left]
        require(len(left) <= 2, f"temporary folders are left: {names}")
        for path in left:
            found = [file for file in path.rglob("*") if file.is_file()]
            require(not found, f"temporary files are left: {found}")
            shutil.rmtree(path)

    def _saving(self):
        return bool(self._unfinished() - self._old)

    def _unfinished(self):
        found = set()
        for path in self.folder.glob("checkpoints/*.unfinished"):
            with contextlib.suppress(OSError):  # It may go at any time.
                found.add((path.name, path.stat().st_mtime_ns))
        return found

    def _chance(self, share):
        return self.rng.random() < share

    def _seconds(self, least, most):
        """Draws a time whose logarithm is uniform."""
        return least * (most / least) ** self.rng.random()


def growth(memory):
    """Returns by how many percent memory grew in the second half of a run."""
    part = len(memory) // 4
    if part < 5:
        return None
    before = statistics.median(memory[part : 2 * part])
    return 100 * (statistics.median(memory[-part:]) / before - 1)


def measure(case):
    """Kills and resumes a run until the time is over or a check fails.

    Args:
        case: dict with `minutes`, `envs`, `capacity`, `every` (updates between
            two checkpoints) and `seed`.

    Returns:
        List of one dict; `failures` says what went wrong.
    """
    if not sys.platform.startswith("linux"):
        raise ValueError(
            "`soak` reads processes from /proc and needs Linux. Received: "
            f"platform={sys.platform}. Run it there."
        )
    folder = pathlib.Path(tempfile.mkdtemp(prefix="soak-"))
    soak = Soak(case, folder)
    failures = []
    try:
        soak.run()
    except Exception as error:  # The result shall say what went wrong.
        soak.stop()
        failures.append(f"{type(error).__name__}: {error}")
        print(f"FAILED, see {folder}", flush=True)
        traceback.print_exc()
    else:
        shutil.rmtree(folder)
    return [{**soak.row(), "failed": len(failures), "failures": failures}]
