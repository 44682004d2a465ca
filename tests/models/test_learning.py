"""What an update computes, seen through `Dreamer.loss_terms`."""

import agents
import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("quick_backend")

OTHER_TERMS = "rew con dyn rep policy value repval".split()
TERMS = ["rec/flags", "rec/mode", "rec/position", *OTHER_TERMS]
PARTS = {
    "enc": "enc/",
    "core": "dyn/dyn",
    "prior": "dyn/prior",
    "posterior": "dyn/obs",
    "dec": "dec/",
    "rew": "rew/",
    "con": "con/",
    "pol": "pol/",
    "val": "val/",
    "slowval": "slowval/",
}
# The matrix of section 4 of the specification. `core` is the recurrence;
# the posterior is reached through its straight-through samples.
SHAPED = {"enc", "core", "posterior"}
ROUTES = {
    "rec/flags": SHAPED | {"dec"},
    "rec/mode": SHAPED | {"dec"},
    "rec/position": SHAPED | {"dec"},
    "rew": SHAPED | {"rew"},
    "con": SHAPED | {"con"},
    "dyn": SHAPED | {"prior"},
    "rep": SHAPED,
    "policy": {"pol"},
    "value": {"val"},
    "repval": SHAPED | {"val"},
}


def differentiated(losses=TERMS, **fields):
    model = agents.make_random_agent(**fields)
    batch = agents.random_batch(model)
    noise = agents.random_noise(model)
    return agents.differentiate(model, batch, noise, losses)


@pytest.fixture(scope="module")
def usual():
    # Without free bits: where they apply there is no gradient at all.
    return differentiated(free_nats=0.0)


def reached(gradients):
    """Returns the parts with a gradient that is not exactly 0."""
    return {
        part
        for part, prefix in PARTS.items()
        if any(
            gradient.any()
            for name, gradient in gradients.items()
            if name.startswith(prefix)
        )
    }


def test_all_weights_belong_to_one_part(usual):
    for name in usual[1]["rew"]:
        assert sum(name.startswith(p) for p in PARTS.values()) == 1, name


def test_each_loss_reaches_its_modules_and_no_others(usual):
    _, gradients = usual
    assert {loss: reached(gradients[loss]) for loss in TERMS} == ROUTES


def test_each_reconstruction_trains_its_own_output(usual):
    _, gradients = usual
    for loss in ("flags", "mode", "position"):
        outputs = {
            name.split("/")[2]
            for name, gradient in gradients[f"rec/{loss}"].items()
            if name.startswith("dec/vec/") and gradient.any()
        }
        assert outputs == {loss}


def test_gradients_that_the_configuration_cuts():
    _, gradients = differentiated(
        ("rew", "repval", "dyn", "rep"),
        reward_grad=False,
        repval_grad=False,
        free_nats=1e6,
    )
    assert reached(gradients["rew"]) == {"rew"}
    assert reached(gradients["repval"]) == {"val"}
    # All divergences are below the free bits.
    assert reached(gradients["dyn"]) == reached(gradients["rep"]) == set()


def test_terms_are_unreduced_and_in_float32(usual):
    result, _ = usual
    assert sorted(result.terms) == sorted(TERMS)
    for name, term in result.terms.items():
        assert term.shape == ((3, 5) if name == "repval" else (3, 6)), name
        assert term.dtype == np.float32
        assert np.isfinite(term).all()
    assert result.total.shape == () and result.total.dtype == np.float32


def test_total_is_the_scaled_sum_of_the_means(usual):
    result, _ = usual
    scales = {"rep": 0.1, "repval": 0.3}
    expected = sum(
        scales.get(name, 1.0) * term.mean()
        for name, term in result.terms.items()
    )
    assert result.total == pytest.approx(expected, rel=1e-6)


def test_latents_are_those_of_the_trained_steps(usual):
    latents = usual[0].latents
    assert latents["deter"].shape == (3, 6, 64)
    assert latents["stoch"].shape == (3, 6, 4)
    assert latents["stoch"].dtype == np.int32
    assert set(np.unique(latents["stoch"])) <= set(range(4))


def test_divergences_have_one_value_and_different_gradients(usual):
    terms = usual[0].terms
    np.testing.assert_allclose(terms["dyn"], terms["rep"], rtol=1e-6)
    assert (terms["dyn"] >= 0).all()


def test_metrics_are_scalars_with_the_announced_names(usual):
    metrics = usual[0].metrics
    names = agents.make_agent().means.scalar_names
    # The others are not known before the gradients.
    names = [n for n in names if n != "skipped" and "grad_norm" not in n]
    assert sorted(metrics) == sorted(names)
    assert all(value.shape == () for value in metrics.values())


@pytest.fixture(scope="module")
def model():
    model = agents.make_random_agent()
    model.retnorm_low.assign(-2.0)
    model.retnorm_high.assign(3.0)
    return model


def test_percentiles_stand_still_without_training(model):
    batch = agents.random_batch(model)
    metrics = agents.evaluate(model, batch, training=False).metrics
    assert (metrics["retnorm/lo"], metrics["retnorm/hi"]) == (-2, 3)


def test_percentiles_move_in_training(model):
    batch = agents.random_batch(model)
    metrics = agents.evaluate(model, batch).metrics
    # 1% of the way to the percentiles of this batch's returns, which are
    # around 0.
    assert -2 < metrics["retnorm/lo"] < -1.9
    assert 2.9 < metrics["retnorm/hi"] < 3


def test_no_replay_value_loss_where_an_episode_ends(usual):
    repval = usual[0].terms["repval"]
    # Trained step t is row t + 1: ends at rows 2 (row 0) and 4 (row 1).
    assert repval[0, 1] == 0 and repval[1, 3] == 0
    assert (repval != 0).sum() == repval.size - 2
