"""What must be true of a run that was killed, whenever that was."""

import json

import numpy as np

import keras_dreamer as kd
from benchmarks.soak_rows import LIMIT
from benchmarks.soak_rows import check_rows
from benchmarks.soak_rows import check_unchanged
from benchmarks.soak_rows import check_windows
from benchmarks.soak_rows import read_index
from benchmarks.soak_rows import read_rows
from benchmarks.soak_rows import require
from benchmarks.soak_run import lag
from keras_dreamer.checkpoints import record
from keras_dreamer.checkpoints.folder import Folder

WINDOWS = 64  # That are sampled in each check.
_KEEP = 2  # Of `Checkpoint`.


class Checks:
    """Checks the folder of a run after every kill.

    Attributes:
        newest: path of the newest checkpoint, or `None`.
        counters: dict of what that one counted.
        rows_checked, windows_checked, episodes: ints, over all checks.

    Args:
        folder: `pathlib.Path` of the run.
        config: `Config`.
        capacity: int. Of the replay.
        rate: float. Updates per agent step.
    """

    def __init__(self, folder, config, capacity, rate):
        self.folder = folder
        self.config = config
        self.capacity = capacity
        self.rate = rate
        self.newest = None
        self.counters = {"updates": 0, "step": 0, "env_steps": 0}
        self.rows_checked = self.windows_checked = self.episodes = 0
        self._streams = None  # The rows at the check before.
        self._counts = None  # How many there were in all, per stream.
        self._cuts = None  # Where runs began new episodes, per stream.
        self._read = {}  # Characters that were read of each log.

    def begin(self):
        """Notes where the next run will cut the episodes, if it resumes."""
        if self._counts is not None:
            for cuts, count in zip(self._cuts, self._counts, strict=True):
                cuts.add(int(count))

    def check(self):
        """Raises `Violation` if something is not as it must be."""
        self._check_witness()
        self._check_episodes()
        self._check_leftovers()
        checkpoints = Folder(self.folder).finished()
        if not checkpoints:
            require(self.newest is None, "all checkpoints are gone")
            return
        newest = checkpoints[-1]
        require(
            self.newest is None or newest.name >= self.newest.name,
            "the newest checkpoint is gone",
        )
        counters = self._check_counters(record.read(newest))
        index = read_index(newest)
        self._check_items(index, counters)
        streams = read_rows(newest)
        self._check_rows(streams, index["rows"], counters)
        self._check_windows(newest, streams)
        self.newest, self.counters = newest, counters
        self._streams, self._counts = streams, index["rows"]

    def _check_counters(self, state):
        ratio = state["callbacks"]["TrainRatio"]
        driver = ratio["driver"]
        counters = {
            "updates": state["updates"],
            "step": driver["step"],
            "env_steps": driver["env_steps"],
        }
        for name, value in counters.items():
            require(value >= self.counters[name], f"{name} went back")
        require(state["updates"] == ratio["updates"], "updates disagree")
        require(
            state["updates"] == state["callbacks"]["RunLog"]["updates"],
            "the log counts other updates",
        )
        # One more than whole updates by rounding, at the most.
        require(
            abs(lag(ratio, self.rate)) <= 1 + 1e-6, "the train ratio is off"
        )
        return counters

    def _check_items(self, index, counters):
        rows, evicted = index["rows"], index["evicted"]
        live = np.maximum(rows - index["meta"]["length"] + 1, 0) - evicted
        found = np.bincount(index["order"], minlength=len(rows))
        require(found == live, "items of a stream are not its live windows")
        require(live.sum() <= self.capacity, "the replay is over-full")
        require(rows.sum() == counters["step"], "rows are not the agent steps")
        if self._counts is not None:
            require(rows >= self._counts, "rows of a stream are gone")

    def _check_rows(self, streams, counts, counters):
        if self._cuts is None:
            self._cuts = [set() for _ in streams]
        for rows, cuts in zip(streams, self._cuts, strict=True):
            check_rows(rows, cuts)
            self.rows_checked += len(rows["position"])
        if self._streams is None:
            return
        resets, complete = 0, True
        for before, after, count in zip(
            self._streams, streams, self._counts, strict=True
        ):
            complete &= bool(after["position"][0] <= count)
            if before["position"][-1] >= after["position"][0]:
                check_unchanged(before, after)
            fresh = after["position"] >= count
            resets += np.count_nonzero(after["is_first"][fresh])
        if complete:  # No row came and went between the two checks.
            steps = counters["step"] - self.counters["step"] - resets
            found = counters["env_steps"] - self.counters["env_steps"]
            require(steps == found, "env steps are not the rows added")

    def _check_windows(self, newest, streams):
        replay = kd.replay.Replay.open(newest, self.config)
        batch = replay.sample(WINDOWS, report=True)
        check_windows(batch, streams)
        self.windows_checked += WINDOWS

    def _check_witness(self):
        most = max(1, int(np.ceil(self.rate)))
        for line in self._new_lines("witness.jsonl"):
            require(line["burst"] <= most, f"a burst of updates: {line}")
            require(
                abs(line["lag"]) <= 1 + 1e-6, f"the train ratio is off: {line}"
            )
            if line["event"] == "begin":
                for name, value in self.counters.items():
                    require(line[name] == value, f"resumed elsewhere: {line}")

    def _check_episodes(self):
        for line in self._new_lines("log.jsonl"):
            if line["event"] != "episode":
                continue
            self.episodes += 1
            require(line["return"] == line["length"], f"a wrong return: {line}")
            require(1 <= line["length"] <= LIMIT, f"a wrong length: {line}")
            require(
                line["agent_steps"] > self.counters["step"],
                f"an episode from before the checkpoint: {line}",
            )

    def _check_leftovers(self):
        # A kill between a save and the removal of the oldest leaves one more;
        # loading holds two replays for a moment.
        left = {
            "checkpoints": ("checkpoints/*[0-9]", _KEEP + 2),
            "unfinished": ("checkpoints/*.unfinished", 2),
            "folders of rows": ("rows/replay-*", 2),
        }
        for name, (pattern, most) in left.items():
            found = len(list(self.folder.glob(pattern)))
            require(found <= most, f"{found} {name} are left, {most} may be")

    def _new_lines(self, name):
        """Returns what was logged since the last call."""
        path = self.folder / name
        if not path.exists():
            return []
        text = path.read_bytes()[self._read.get(name, 0) :]
        self._read[name] = self._read.get(name, 0) + len(text)
        require(not text or text.endswith(b"\n"), f"{name} ends in a half line")
        return [json.loads(line) for line in text.splitlines()]
