"""The published code's numbers, on the active backend."""

import agents
import numpy as np
import pytest
from agents import relative_error
from agents import with_prefix

pytestmark = pytest.mark.usefixtures("quick_backend")

# What the reference reports and we don't: chance that an action is random.
UNTRACKED = "rand/"


@pytest.mark.parametrize("name", agents.GOLDENS)
def test_losses_and_gradients(name):
    golden = agents.load_golden(name)
    model = agents.golden_agent(name, golden)
    # With training=True the return percentiles move before they are read.
    result, gradients = agents.gradients(
        model, agents.golden_batch(model, golden)
    )
    _check_terms(model, result, with_prefix(golden, "loss/"))
    _check_gradients(gradients, with_prefix(golden, "grad/"))
    _check_latents(result.latents, with_prefix(golden, "entry/"))
    _check_metrics(model, result.metrics, with_prefix(golden, "metric/"))


def _check_terms(model, result, expected):
    total = expected.pop("total")
    np.testing.assert_allclose(result.total, total, rtol=1e-5)
    assert result.total.dtype == np.float32
    renamed = {_our_name(model, name): x for name, x in expected.items()}
    assert renamed.keys() == result.terms.keys()
    for name, value in renamed.items():
        assert result.terms[name].shape == value.shape, name
        assert relative_error(result.terms[name], value) < 1e-5, name


def _our_name(model, name):
    return f"rec/{name}" if name in model.observation_leaves else name


def _check_gradients(gradients, expected):
    trained = {k for k in gradients if not k.startswith("slowval/")}
    assert trained == expected.keys()
    for name, value in expected.items():
        assert relative_error(gradients[name], value) < 1e-4, name


def _check_latents(latents, expected):
    assert relative_error(latents["deter"], expected["deter"]) < 1e-5
    # The official code keeps one-hot vectors, we keep the index.
    np.testing.assert_array_equal(
        latents["stoch"], expected["stoch"].argmax(-1)
    )


def _check_metrics(model, metrics, expected):
    for name, value in expected.items():
        if name.startswith(UNTRACKED):
            continue
        prefix, _, rest = name.partition("/")
        if prefix == "loss":
            name = f"loss/{_our_name(model, rest)}"
        assert metrics[name] == pytest.approx(value, rel=1e-4, abs=1e-6), name


@pytest.mark.parametrize("name", agents.GOLDENS)
def test_four_updates(name):
    golden = agents.load_golden(name)
    model = agents.quick_compile(agents.golden_agent(name, golden))
    agents.use_mode_noise(model)
    logs = agents.train(model, agents.golden_batch(model, golden), updates=4)
    for key, log in {
        "total": "loss",
        "retnorm/lo/value": "retnorm/lo",
        "retnorm/hi/value": "retnorm/hi",
    }.items():
        expected = [golden[f"step{update}/{key}"] for update in range(1, 5)]
        np.testing.assert_allclose(logs[log], expected, rtol=1e-5, err_msg=log)
    _check_final(golden, model.official_weights())


def _check_final(golden, actual):
    """Compares how far each tensor went, where its gradient is none of noise.

    The optimizer divides gradients by their own size, so entries whose
    gradient is rounding noise walk randomly. The others are at least 1/1000
    of the largest of their tensor here, three orders above that noise. The
    slow critic is compared where the critic is.
    """
    compared = 0
    for name, final in with_prefix(golden, "final/").items():
        gradient = golden.get("grad/" + name.replace("slowval/", "val/"))
        if gradient is None:
            continue
        start = golden[f"param/{name}"]
        sound = np.abs(gradient) > 1e-3 * np.abs(gradient).max()
        error = relative_error(
            (actual[name] - start)[sound], (final - start)[sound]
        )
        assert error < 2e-4, name
        compared += sound.sum()
    total = sum(x.size for x in with_prefix(golden, "final/").values())
    assert compared > 0.55 * total
