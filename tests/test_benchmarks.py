"""The measurements run and give their numbers; no test of speed."""

import csv
import json

import keras
import numpy as np
import pytest
from agents import SHALLOW
from agents import TINY
from agents import make_agent
from agents import quick_backend
from agents import quick_compile

from benchmarks import __main__ as program
from benchmarks import act
from benchmarks import backend
from benchmarks import cases
from benchmarks import child
from benchmarks import common
from benchmarks import env
from benchmarks import export
from benchmarks import fit
from benchmarks import hlo
from benchmarks import long
from benchmarks import replay
from benchmarks import report
from benchmarks import update

SMALL = {k: v for k, v in TINY.items() if k != "size"}
BACKEND = keras.backend.backend()


@pytest.fixture(scope="module")
def agent():
    model = make_agent(common.OBSERVATION, common.ACTION, **SHALLOW)
    with quick_backend():
        yield quick_compile(model)


@pytest.fixture
def case(agent, monkeypatch):
    """Returns a case of all commands; those with an agent take `agent`."""
    for module in (act, export, fit, long, update):
        monkeypatch.setattr(module, "make_agent", lambda case: agent)
    return {
        "size": "small",
        "dtype": "float32",
        "config": SMALL,
        "updates": 2,
        "breakdown": False,
        "blocks": 1,
        "ratio": 64.0,
        "calls": 2,
    }


def assert_positive(row, *names):
    for name in names:
        assert row[name] > 0, f"{name}={row[name]}"


def test_update(case):
    [row] = update.measure(case)
    assert_positive(row, "first_s", "update_ms", "yardstick_ms", "peak_mb")
    ratio = row["update_ms"] / row["yardstick_ms"]
    assert row["yardsticks"] == pytest.approx(ratio)
    assert row["batch_size"] == SMALL["batch_size"]


def test_yardstick_is_the_product_of_the_issue():
    config = common.kd.Config("1m")
    assert common.Yardstick(config).shapes == ((16384, 640), (640, 64))


@pytest.mark.slow
def test_breakdown_adds_up_to_the_update(agent):
    batch = common.make_batch(agent)
    parts = update.break_down(agent, batch, 1000.0, 1)
    names = "noise world_model imagination heads optimizer".split()
    assert sum(parts[name] for name in names) == pytest.approx(1000.0)
    assert_positive(parts, "world_model_forward", "forward")


def test_step_gives_the_variables_back(agent):
    before = np.array(agent.optimizer.iterations)
    step = backend.Step(agent)
    step(common.make_batch(agent))
    step.close()
    assert np.array(agent.optimizer.iterations) == before + 1


def test_fit(case):
    [row] = fit.measure({**case, "envs": 2})
    assert_positive(row, "bare_ms", "fit_ms", "overhead_ms", "sample")
    assert_positive(row, "write_back", "slow_critic", "collect")
    # Updates in `fit` take as long as their step and the overhead.
    assert row["overhead_ms"] < row["fit_ms"] + row["collect"]


def test_act(case):
    rows = act.measure({**case, "envs": [1, 3]})
    assert [row["envs"] for row in rows] == [1, 3]
    for row in rows:
        assert_positive(row, "act_ms", "policy_ms", "ratio")


def test_export(case):
    torch = ("onnx", "onnxruntime")
    for package in torch if BACKEND == "torch" else ("tensorflow",):
        pytest.importorskip(package)
    [row] = export.measure(case)
    assert_positive(row, "export_s", "run_ms", "act_ms")
    # Weights of the prior stay at home, a graph comes along.
    assert 0.5 < row["file_mb"] / row["weights_mb"] < 20


def test_replay(case):
    rows = replay.measure({**case, "envs": 2, "steps": [700, 300]})
    assert [row["steps"] for row in rows] == [300, 700]
    for row in rows:
        assert_positive(row, "add_ms", "add_batch_ms", "sample_ms")
        assert_positive(row, "write_back_ms")
        # 24 observations, 6 actions, the reward, 3 flags, 64 + 4 latents.
        assert row["payload"] == 4 * (24 + 6 + 1) + 3 + 4 * 64 + 4
        assert row["bytes_ratio"] >= 1


def test_env():
    task = {"env": "gym:Pendulum-v1", "mode": "sync", "envs": 2, "steps": 3}
    [row] = env.measure(task)
    assert_positive(row, "steps_per_s", "start_s")


def test_long_writes_a_line_every_so_many_updates(case, tmp_path):
    path = tmp_path / "results" / "long.csv"
    task = {**case, "envs": 2, "updates": 6, "every": 2, "csv": str(path)}
    [row] = long.measure(task)
    assert_positive(row, "first_ms", "last_ms", "first_mb", "last_mb")
    assert row["csv"] == "long.csv"
    with path.open() as file:
        lines = list(csv.DictReader(file))
    assert [line["update"] for line in lines] == ["2", "4", "6"]


HLO = """\
HloModule jit_step, is_scheduled=true

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

%body.1 (state: (s32[], f32[4])) -> (s32[], f32[4]) {
  %state = (s32[], f32[4]{0}) parameter(0)
  %i = s32[] get-tuple-element(%state), index=0
  %x = f32[4]{0} get-tuple-element(%state), index=1
  %next = s32[] fusion(%i), kind=kLoop, calls=%add
  %dot.1 = f32[4]{0} dot(%x, %x), metadata={op_name="jit(step)/dot"}
  ROOT %t = (s32[], /*index=1*/f32[4]{0}) tuple(%next, %dot.1)
}

%condition.1 (state: (s32[], f32[4])) -> pred[] {
  %state = (s32[], f32[4]{0}) parameter(0)
  ROOT %less = pred[] compare(%state, %state), direction=LT
}

%left (x: f32[4]) -> f32[4] {
  ROOT %copy = f32[4]{0} copy(%x)
}

%right (x: f32[4]) -> f32[4] {
  %p = f32[4]{0} copy(%x)
  ROOT %q = f32[4]{0} copy(%p)
}

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  %zero = s32[] constant(0)
  %t = (s32[], f32[4]{0}) tuple(%zero, %x)
  %loop = (s32[], /*index=1*/f32[4]{0}) while(%t), condition=%condition.1, \
body=%body.1, backend_config={"known_trip_count":{"n":"7"}}
  %y = f32[4]{0} get-tuple-element(%loop), index=1
  %one = f32[4]{0} conditional(%zero, %y, %y), \
branch_computations={%left, %right}
  ROOT %r = f32[] reduce(%one, %zero), dimensions={0}, to_apply=%add
}
"""


def test_kernels_of_loops_and_branches():
    # 7 turns of 2 in the body and 1 in the condition, the longer branch with
    # 2, and the reduction: 7 * 3 + 2 + 1 = 24.
    assert hlo.count_kernels(HLO) == 24


@pytest.mark.skipif(BACKEND != "jax", reason="compiles with jax")
def test_kernels_of_a_compiled_scan_grow_with_its_length():
    import jax

    def count(length):
        def loop(x):
            return jax.lax.scan(lambda c, _: (c @ c, None), x, None, length)

        compiled = jax.jit(loop).lower(np.eye(50, dtype="f")).compile()
        return hlo.count_kernels(compiled.as_text())

    assert count(20) - count(10) == pytest.approx(count(30) - count(20))
    assert count(20) > count(10) >= 10


def test_cases_are_all_combinations():
    args = program.parse("update --backend jax torch --size 1m 12m".split())
    found = cases.expand(vars(args))
    assert [(c["backend"], c["size"]) for c in found] == [
        ("jax", "1m"),
        ("jax", "12m"),
        ("torch", "1m"),
        ("torch", "12m"),
    ]
    assert found[0]["config"] == {
        "batch_size": 16,
        "batch_length": 64,
        "imag_length": 15,
    }


def test_a_sweep_changes_one_field_at_a_time():
    args = program.parse(["update", "--sweep", "--batch-size", "8"])
    base, *others = [case["config"] for case in cases.expand(vars(args))]
    assert len(others) == sum(map(len, cases.SWEEP.values())) - 1
    for config in others:
        assert sum(config[name] != base[name] for name in base) == 1


def test_long_measures_one_case():
    args = program.parse("long --size 1m 12m".split())
    with pytest.raises(ValueError, match="one case at a time.*2 cases"):
        cases.expand(vars(args))


def test_table_leaves_out_empty_columns():
    rows = [{"a": 1234.5, "b": None}, {"a": None, "c": "x"}, {"a": 0.01234}]
    text = report.table(rows, {"c": "", "a": "A, ms", "b": "B"})
    assert text.splitlines() == [
        "| c   | A, ms  |".replace("c  ", "c"),
        "| --- | ------ |",
        "| -   | 1234   |".replace("-  ", "-"),
        "| x   | -      |".replace("x  ", "x"),
        "| -   | 0.0123 |".replace("-  ", "-"),
    ]


def test_results_are_written(monkeypatch, tmp_path, capsys):
    """The whole program, without a process for each case."""

    def run(command, **kwargs):
        monkeypatch.setattr(program.sys, "argv", ["", *command[-1:]])
        child.main(command[-1])

    monkeypatch.setattr(program.subprocess, "run", run)
    monkeypatch.setattr(report, "commit", lambda: "0123abc")
    out = tmp_path / "new" / "env"
    arguments = "env --env gym:Pendulum-v1 --mode sync --steps 2 --out".split()
    assert program.main([*arguments, str(out)]) == 0
    result = json.loads(out.with_suffix(".json").read_text())
    assert result["commit"] == "0123abc"
    assert result["hardware"]["cores"] >= 1
    assert result["rows"][0]["env"] == "gym:Pendulum-v1"
    text = out.with_suffix(".md").read_text()
    assert "| gym:Pendulum-v1 | sync |" in text
    assert "steps/s" in capsys.readouterr().out


def test_a_case_that_fails_does_not_end_the_others(monkeypatch, tmp_path):
    def run(*args, **kwargs):
        raise program.subprocess.CalledProcessError(3, "measurement")

    monkeypatch.setattr(program.subprocess, "run", run)
    arguments = ["act", "--out", str(tmp_path / "act")]
    assert program.main(arguments) == 1
    assert not list(tmp_path.iterdir())
