"""20 updates with given noise: the same on every backend, now and later.

    KERAS_BACKEND=jax python tests/models/test_trajectory.py

writes the file that they are compared to.

Weights, batches and noise come from NumPy. Samples are drawn, not modes: the
noise chooses a class by comparison with a sum of probabilities, so a rounding
error changes a sample only right next to the threshold, which happens to none
of the 6000 samples here.

An optimizer that divides gradients by their own size turns those that are
zero but for rounding into full steps of random sign. `eps=1e-6` takes that
away: half of the gradients here are above 4e-4, and their rounding errors
around 1e-9, so that what they do to a step is below 1/1000 of it where it is
largest. On one machine the three backends then differ by 3e-7 in the losses
and by 7e-6 in how far a tensor went; 1e-5 and 1e-4 leave room for other
processors. A real difference, such as one sample, shows in the third digit.
"""

import agents
import numpy as np
import pytest

UPDATES = 20
FIELDS = {
    "deter": 16,
    "hidden": 8,
    "units": 8,
    "blocks": 2,
    "batch_size": 3,
    "batch_length": 4,
    "imag_length": 3,
    "lr": 3e-3,
    "warmup": 5,
    "eps": 1e-6,
    "free_nats": 0.0,  # Divergences are small here, and would not count.
}
SHOWN = (
    "loss",
    "loss/rew",
    "loss/dyn",
    "loss/policy",
    "loss/value",
    "loss/repval",
    "retnorm/lo",
    "retnorm/hi",
)


def trajectory():
    """Returns losses `(20, 8)` and how far every weight went, in float64."""
    model = agents.make_agent(**FIELDS)
    start = agents.random_weights(model, seed=1)
    model.load_official_weights(start)
    model.compile(run_eagerly=agents.BACKEND == "tensorflow")
    # A batch brings its noise: what is drawn outside would be a constant of
    # the compiled update.
    model.update_terms = lambda batch: model.loss_terms(batch, batch["noise"])
    batches = [
        {
            **agents.random_batch(model, seed=update % 4),
            "noise": agents.random_noise(model, seed=100 + update),
        }
        for update in range(UPDATES)
    ]
    history = model.fit(
        agents.FixedBatches(*batches), epochs=UPDATES, verbose=0
    ).history
    final = model.official_weights()
    losses = np.stack([history[name] for name in SHOWN], axis=1)
    return losses, {
        name: checksums(final[name].astype("float64") - start[name])
        for name in start
        if not name.startswith(("retnorm", "slowval_count"))
    }


def checksums(change):
    """Returns the norm of a change and its product with a fixed direction."""
    direction = np.cos(1.0 + np.arange(change.size))
    return np.array([np.linalg.norm(change), direction @ change.ravel()])


@pytest.fixture(scope="module")
def actual():
    return trajectory()


@pytest.fixture(scope="module")
def expected():
    return agents.load_golden("trajectory")


def test_losses_of_all_updates(actual, expected):
    losses, _ = actual
    np.testing.assert_allclose(losses, expected["losses"], rtol=1e-5, atol=1e-6)


def test_the_trajectory_goes_somewhere(expected):
    losses = expected["losses"][:, 0]
    assert losses[-4:].mean() < 0.9 * losses[:4].mean()


def test_how_far_every_weight_went(actual, expected):
    _, changes = actual
    stored = agents.with_prefix(expected, "change/")
    assert changes.keys() == stored.keys()
    for name, value in stored.items():
        norm = value[0]
        np.testing.assert_allclose(
            changes[name], value, rtol=0, atol=1e-4 * norm, err_msg=name
        )


def write():
    losses, changes = trajectory()
    np.savez_compressed(
        agents.GOLDEN / "trajectory.npz",
        losses=losses,
        **{f"change/{name}": value for name, value in changes.items()},
    )


if __name__ == "__main__":
    write()
