import shutil

import agents
import gymnasium
import keras
import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("quick_backend")

FLOAT32 = {np.dtype("float32")}


# Construction.


def test_is_built_on_return():
    model = agents.make_agent()
    assert model.built
    assert model.count_params() > 10_000
    assert model.config.recipe == "paper"


@pytest.mark.parametrize("kind", ["global", "argument"])
def test_float16_is_refused(kind):
    arguments = {"dtype": "mixed_float16"} if kind == "argument" else {}
    if kind == "global":
        keras.config.set_dtype_policy("mixed_float16")
    with pytest.raises(
        ValueError, match="float32 or bfloat16.*'mixed_float16'.*Use"
    ):
        agents.make_agent(**arguments)


# Mixed precision.


# Between them they have every kind of input, both recipes and no context.
MIXED = ("head_hybrid", "head_nocontext", "paper_discrete")


@pytest.mark.parametrize("name", MIXED)
def test_bfloat16_stays_close_to_the_golden_total(name):
    golden = agents.load_golden(name)
    model = agents.golden_agent(name, golden, dtype="mixed_bfloat16")
    result = agents.evaluate(model, agents.golden_batch(model, golden))
    assert result.total == pytest.approx(golden["loss/total"], rel=0.02)
    assert {term.dtype for term in result.terms.values()} == FLOAT32
    assert {value.dtype for value in result.metrics.values()} == FLOAT32
    assert result.latents["deter"].dtype.name == "bfloat16"


def test_bfloat16_stays_close_to_float32_at_the_small_size():
    small = {"deter": 256, "hidden": 64, "units": 64, "stoch": 16, "classes": 8}
    totals = []
    for dtype in ("float32", "mixed_bfloat16"):
        model = agents.make_agent(**agents.SHALLOW, **small, dtype=dtype)
        batch = agents.random_batch(model)
        totals.append(agents.evaluate(model, batch).total)
    assert totals[1].dtype == np.float32
    assert totals[1] == pytest.approx(totals[0], rel=0.02)


def test_the_global_policy_reaches_all_parts():
    keras.config.set_dtype_policy("mixed_bfloat16")
    model = agents.make_agent(**agents.SHALLOW)
    assert {x.compute_dtype for x in model._flatten_layers()} == {"bfloat16"}
    assert {v.dtype for v in model.trainable_variables} == {"float32"}


# Ways to run.


def losses(**kwargs):
    """Returns the losses of 2 updates without noise, and the weights."""
    model = agents.make_random_agent(
        agents.numbers(3),
        gymnasium.spaces.Discrete(3),
        **agents.SHALLOW,
        deter=8,
        batch_length=3,
        imag_length=2,
        warmup=0,
        lr=1e-3,
    )
    model.compile(**kwargs)
    agents.use_mode_noise(model)
    logs = agents.train(model, agents.random_batch(model), updates=2)
    found = {k: v for k, v in logs.items() if k.startswith("loss")}
    return {**found, **model.official_weights()}


@pytest.fixture(scope="module")
def usual_losses():
    """As `compile()` without arguments does it."""
    return losses()


WAYS = {"eager": {"run_eagerly": True}}
if agents.BACKEND == "tensorflow":  # On the others this is eager, too.
    WAYS["not_jitted"] = {"jit_compile": False}
if agents.BACKEND == "torch":  # On the others this is what is usual.
    WAYS["jitted"] = {"jit_compile": True}
_JITTED = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not any(map(shutil.which, ("g++", "clang++", "cl"))),
        reason="torch.compile needs a C++ compiler",
    ),
    # torch.compile warns of its own imports and of what it finds in graphs.
    pytest.mark.filterwarnings("ignore"),
]


@pytest.mark.parametrize(
    "way",
    [
        pytest.param(way, marks=_JITTED if way == "jitted" else [])
        for way in WAYS
    ],
)
def test_losses_do_not_depend_on_how_they_are_run(way, usual_losses):
    found = losses(**WAYS[way])
    assert found.keys() == usual_losses.keys()
    for name, values in usual_losses.items():
        np.testing.assert_allclose(
            found[name], values, rtol=1e-5, atol=1e-6, err_msg=name
        )
