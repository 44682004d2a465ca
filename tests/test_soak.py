"""The checks of `benchmarks soak` find what they look for."""

import json
import sys

import keras
import numpy as np
import pytest
from scripted import Puppet

import keras_dreamer as kd
from benchmarks import soak
from benchmarks import soak_process
from benchmarks import soak_run
from benchmarks.soak_checks import Checks
from benchmarks.soak_rows import Counted
from benchmarks.soak_rows import Violation
from keras_dreamer.checkpoints import record

CONFIG = kd.Config(deter=2, stoch=1, classes=8, blocks=1, batch_length=4)
CAPACITY = 120
RATE = 0.5
FIRST = 20  # Agent step of the first update.


class Run:
    """A run without updates, whose checkpoints are as those of `soak_run`."""

    def __init__(self, folder, resumed=None):
        self.folder = folder
        self.envs = kd.envs.make(Counted, 2, seed=len(list(folder.iterdir())))
        self.replay = kd.replay.Replay(
            CONFIG, self.envs, capacity=CAPACITY, dtype="float32"
        )
        self.driver = kd.Driver(self.envs, Puppet(self.envs), self.replay)
        if resumed is not None:
            self.replay.load(resumed)
            state = json.loads((resumed / record.NAME).read_text())
            state = state["content"]["callbacks"]["TrainRatio"]["driver"]
            self.driver.set_state(state)
            self.log("witness", event="begin", **self.counters(), lag=0)

    def collect(self, steps):
        target = self.driver.step + steps
        while self.driver.step < target:
            self.driver.advance(target - self.driver.step)
        while self.driver.episodes:
            episode = self.driver.episodes.popleft()
            self.log(
                "log",
                event="episode",
                agent_steps=episode.step,
                length=episode.length,
                **{"return": episode.episode_return},
            )
        return self

    def counters(self):
        step = self.driver.step
        updates = 1 + int((step - FIRST) * RATE)
        return {
            "updates": updates,
            "step": step,
            "env_steps": self.driver.env_steps,
            "burst": 1,
        }

    def log(self, name, **line):
        with (self.folder / f"{name}.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")

    def save(self, number, updates=0, env_steps=0):
        """Writes a checkpoint; the rest is added to its counters."""
        path = self.folder / "checkpoints" / f"{number:08d}"
        path.mkdir(parents=True)
        self.replay.save_changes(path)
        counters = self.counters()
        counters["updates"] += updates
        driver = self.driver.get_state()
        driver["env_steps"] += env_steps
        ratio = {
            "updates": counters["updates"],
            "due": 0,
            "first_step": FIRST,
            "driver": driver,
        }
        state = {
            "updates": counters["updates"],
            "callbacks": {
                "TrainRatio": ratio,
                "RunLog": {"updates": counters["updates"]},
            },
        }
        record.write(path, state)
        return path


@pytest.fixture
def checks(tmp_path):
    return Checks(tmp_path, CONFIG, CAPACITY, RATE)


@pytest.fixture
def second(tmp_path, checks):
    """A run that goes on after a kill, with a replay that is full."""
    first = Run(tmp_path).collect(100).save(1)
    checks.check()
    checks.begin()
    return Run(tmp_path, first).collect(63)


def test_a_run_that_goes_on_is_right(second, checks):
    second.save(2)
    checks.check()
    checks.begin()
    # Two more kills at once, then for so long that all rows are others.
    Run(second.folder, checks.newest)
    checks.check()
    checks.begin()
    Run(second.folder, checks.newest).collect(1000).save(3)
    checks.check()
    assert checks.newest.name == "00000003"
    assert checks.counters["step"] == 1163
    assert checks.episodes > 20 and checks.rows_checked > 300


def set_row(name, value, where=-1):
    def spoil(run):
        rows = run.replay._pool
        held = np.flatnonzero(rows.files >= 0)
        rows.arrays[name][held[where]] = value

    return spoil


def spoil_items(run):
    run.replay._items.evicted[0] += 1


def lose_row(run):
    run.replay._pool.files[run.replay._pool.locate(np.array([30]))] = -1


@pytest.mark.parametrize(
    "spoil, message",
    [
        (set_row("reward", 5.0), "rewards are not 1"),
        (set_row("observation/observation", 7.0, 3), "has changed|in order"),
        (set_row("is_terminal", True, 5), "terminal|too early|episodes"),
        (set_row("is_first", True, slice(3, 5)), "where episodes begin"),
        (set_row("action/action", 2), "an action is unknown"),
        (set_row("context/deter", np.nan), "bad latents"),
        (spoil_items, "not its live windows"),
        (lose_row, "lacks rows"),
    ],
)
def test_wrong_rows_are_found(second, checks, spoil, message):
    spoil(second)
    second.save(2)
    with pytest.raises(Violation, match=message):
        checks.check()


def test_an_unknown_cut_is_found(tmp_path, checks):
    first = Run(tmp_path).collect(100).save(1)
    checks.check()
    Run(tmp_path, first).collect(60).save(2)
    with pytest.raises(Violation, match="where no run began"):
        checks.check()


def test_a_run_that_does_not_cut_is_found(tmp_path, checks):
    run = Run(tmp_path).collect(100)
    run.save(1)
    checks.check()
    checks.begin()
    run.collect(60).save(2)
    with pytest.raises(Violation, match="did not reset"):
        checks.check()


@pytest.mark.parametrize(
    "change, message",
    [
        ({"updates": 2}, "train ratio is off"),
        ({"updates": -2}, "train ratio is off"),
        ({"updates": -60}, "updates went back"),
        ({"env_steps": 1}, "env steps are not the rows"),
    ],
)
def test_wrong_counters_are_found(second, checks, change, message):
    second.save(2, **change)
    with pytest.raises(Violation, match=message):
        checks.check()


@pytest.mark.parametrize(
    "name, line, message",
    [
        ("witness", {"event": "update", "lag": 0, "burst": 2}, "a burst"),
        ("witness", {"event": "update", "lag": 2.0, "burst": 1}, "is off"),
        (
            "witness",
            {"event": "begin", "lag": 0, "burst": 0, "updates": 0},
            "resumed elsewhere",
        ),
        (
            "log",
            {"event": "episode", "return": 3.0, "length": 4},
            "a wrong return",
        ),
        (
            "log",
            {"event": "episode", "return": 9, "length": 9, "agent_steps": 2},
            "before the checkpoint",
        ),
    ],
)
def test_wrong_logs_are_found(second, checks, name, line, message):
    second.log(name, **line)
    with pytest.raises(Violation, match=message):
        checks.check()


def test_half_a_line_is_found(second, checks):
    with (second.folder / "log.jsonl").open("a") as file:
        file.write('{"event"')
    with pytest.raises(Violation, match="half line"):
        checks.check()


@pytest.mark.parametrize(
    "name, message",
    [
        ("checkpoints/0000010{}", "checkpoints are left"),
        ("checkpoints/{}.unfinished", "unfinished are left"),
        ("rows/replay-{}", "folders of rows are left"),
    ],
)
def test_leftovers_are_found(second, checks, name, message):
    for number in range(4):
        (second.folder / name.format(number)).mkdir(parents=True)
    with pytest.raises(Violation, match=message):
        checks.check()


def test_lost_checkpoints_are_found(second, checks):
    checks.newest.rename(checks.newest.with_name("lost"))
    with pytest.raises(Violation, match="checkpoints are gone"):
        checks.check()


def test_lag():
    state = {"first_step": 10, "updates": 6, "due": 0, "driver": {"step": 20}}
    assert soak_run.lag(state, 0.5) == 0.0  # 1 + 10 / 2
    assert soak_run.lag({**state, "due": 2}, 0.5) == 2.0
    assert soak_run.lag({**state, "first_step": 0}, 0.5) == 0.0


def test_growth_compares_the_second_half():
    assert soak.growth([1.0] * 19) is None
    flat = [50.0] * 10 + [100.0] * 30
    assert soak.growth(flat) == 0.0
    assert soak.growth(flat[:-10] + [110.0] * 10) == pytest.approx(10.0)


def test_processes_are_found_by_their_mark(monkeypatch):
    if not sys.platform.startswith("linux"):
        pytest.skip("reads /proc")
    assert soak_process.marked("KERAS_DREAMER_SOAK=none") == []


def test_failures_are_a_result(monkeypatch, capsys):
    def fail(self):
        raise Violation("rows are gone")

    monkeypatch.setattr(soak.Soak, "run", fail)
    case = {"minutes": 1, "envs": 1, "capacity": 9, "every": 5, "seed": 0}
    [row] = soak.measure(case)
    assert row["failures"] == ["Violation: rows are gone"]
    assert (row["failed"], row["kills"]) == (1, 0)


@pytest.mark.slow
@pytest.mark.skipif(
    keras.backend.backend() != "jax" or not sys.platform.startswith("linux"),
    reason="takes a minute; reads /proc",
)
def test_soak():
    """A kill after some checkpoints, then a clean end."""
    case = {"envs": 2, "capacity": 300, "every": 10, "seed": 7}
    [row] = soak.measure({**case, "minutes": 0.02})
    assert row["failures"] == []
    assert (row["kills"], row["resumes"]) == (1, 1)
    assert row["updates"] > 20 and row["windows_checked"] > 64
    assert row["rows_checked"] > 200
