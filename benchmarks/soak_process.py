"""One process of the run that `soak` kills, and those that it starts."""

import os
import pathlib
import signal
import subprocess
import sys
import time
import uuid

from benchmarks import report
from benchmarks.soak_rows import require

_TAG = "KERAS_DREAMER_SOAK"  # Marks all processes of a run.
_PATIENCE = 600.0  # Seconds without an update after which a run hangs.
_GONE = 120.0  # Seconds that workers get to notice that their run is dead.


class Run:
    """One process of the run, from its start to its kill.

    Args:
        folder: `pathlib.Path` of the run, with `task.json`.
    """

    def __init__(self, folder):
        self.folder = folder
        self.tag = f"{_TAG}={uuid.uuid4().hex}"
        self.log = folder / "output.txt"
        self.memory = []  # MB, twice a second while it trains.
        self.trains_since = None
        self._witness = folder / "witness.jsonl"
        self._place = os.path.getsize(self._witness)
        self._lines = 0
        self.start = self._changed = time.monotonic()
        temporary = folder / "tmp"
        temporary.mkdir(exist_ok=True)
        name, value = self.tag.split("=")
        with self.log.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.soak_run", str(folder)],
                cwd=report.ROOT,
                env={**os.environ, name: value, "TMPDIR": str(temporary)},
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def watch(self, seconds, trains=False, until=lambda: False):
        """Waits, while the run must live and make updates.

        Args:
            seconds: float. How long; with `trains` from the first update on.
            trains: bool. Whether to wait for updates.
            until: function; the wait ends when it returns true.
        """
        begin = None if trains else time.monotonic()
        while not until():
            now = time.monotonic()
            if begin is not None and now - begin >= seconds:
                return
            code = self.process.poll()
            require(code is None, f"exit code {code}: {self.said()}")
            self._read()
            require(now - self._changed < _PATIENCE, f"hangs: {self.said()}")
            if self._lines > 1:  # The first line is no update.
                begin = begin or now
                self.trains_since = self.trains_since or now
                if now - self.trains_since >= len(self.memory) / 2:
                    self.memory.append(resident(self.process.pid))
            time.sleep(0.005)

    def end(self, signum):
        """Ends the process; returns seconds until its workers were gone."""
        self.process.send_signal(signum)
        code = self.process.wait(_PATIENCE)
        expected = -signal.SIGKILL if signum == signal.SIGKILL else 0
        require(code == expected, f"exit code {code}: {self.said()}")
        start = time.monotonic()
        while left := marked(self.tag):
            waited = time.monotonic() - start
            require(waited < _GONE, f"processes are left: {left}")
            time.sleep(0.05)
        return time.monotonic() - start

    def said(self):
        """Returns the end of what the process printed."""
        return self.log.read_text(errors="replace")[-3000:]

    def _read(self):
        with self._witness.open("rb") as file:
            file.seek(self._place)
            new = file.read()
        if new:
            self._place += len(new)
            self._lines += new.count(b"\n")
            self._changed = time.monotonic()


def marked(tag):
    """Returns the ids of the processes with a variable in the environment."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            if tag.encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:  # It has ended, or is another user's.
            continue
    return found


def resident(pid):
    """Returns the MB of memory in use by a process, 0 if it has ended."""
    try:
        pages = pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]
    except OSError:
        return 0.0
    return int(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20
