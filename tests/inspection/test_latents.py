import agents
import numpy as np
import pytest

from keras_dreamer.inspection import latent_usage
from keras_dreamer.inspection.latents import LatentUsage

SHARE = np.array([[1.0, 0.0, 0.0, 0.0], [0.5, 0.478, 0.022, 0.0]])
ONES = np.ones(2)


def test_used_classes():
    # With 4 classes from 0.1 / 4 = 0.025 on.
    assert LatentUsage(SHARE, ONES, ONES).used.tolist() == [1, 2]


def test_effective_classes():
    effective = LatentUsage(np.full((1, 4), 0.25), ONES, ONES).effective
    np.testing.assert_allclose(effective, [4.0], rtol=1e-6)
    # exp(-2 * 0.5 * log(0.5)) = 2.
    share = np.array([[0.5, 0.5, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    effective = LatentUsage(share, ONES, ONES).effective
    np.testing.assert_allclose(effective, [2.0, 1.0], rtol=1e-6)


def test_agrees_with_the_update(quick_backend):
    model = agents.make_random_agent()
    batch = agents.random_batch(model)
    usage = latent_usage(model, batch)
    noise = agents.random_noise(model)
    rng = np.random.default_rng(0)
    noise["posterior"] = rng.random((3, 6, 4), "float32")
    terms = agents.evaluate(model, batch, noise)
    # The classes that the update itself chose with the same noise.
    stoch = terms.latents["stoch"].reshape(-1, 4)
    counts = (stoch[..., None] == np.arange(4)).mean(axis=0)
    np.testing.assert_allclose(usage.share, counts, atol=1e-6)
    for name, entropy in (
        ("rep_ent", usage.posterior_entropy),
        ("dyn_ent", usage.prior_entropy),
    ):
        assert entropy.sum() == pytest.approx(terms.metrics[name], rel=1e-4)
