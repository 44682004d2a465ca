"""Imagined trajectories against the networks, applied one by one."""

import agents
import numpy as np
import pytest
from backend_tools import fast
from helpers import to_numpy
from keras import ops
from keras import tree

from keras_dreamer.layers.inputs import concat_inputs
from keras_dreamer.models.imagination import imagine
from keras_dreamer.models.world_model import Posterior

pytestmark = pytest.mark.usefixtures("quick_backend")

STARTS = (2, 3)
N = 6


@pytest.fixture(scope="module")
def model():
    return agents.make_random_agent()


@pytest.fixture(scope="module")
def dream(model):
    config = model.config
    rng = np.random.default_rng(0)
    deter = rng.uniform(-1, 1, (*STARTS, config.deter)).astype("float32")
    index = rng.integers(config.classes, size=(*STARTS, config.stoch))
    stoch = np.eye(config.classes, dtype="float32")[index]
    stoch = stoch.reshape(*STARTS, -1)
    noise = model.mode_noise(*STARTS, 0.5)

    def run(deter, stoch):
        nets = model.networks
        dream = imagine(
            nets, nets.tensors(), Posterior(deter, stoch), noise, config
        )
        predicted = {
            name: getattr(dream, name)
            for name in ("value", "slow", "reward", "cont")
        }
        return {**dream.steps, **predicted}

    inputs = map(ops.convert_to_tensor, (deter, stoch))
    arrays = tree.map_structure(to_numpy, fast(run)(*inputs))
    return {**arrays, "start": (deter, stoch)}


def test_shapes(model, dream):
    config = model.config
    steps = config.imag_length
    assert dream["deter"].shape == (steps, N, config.deter)
    assert dream["stoch"].shape == (steps, N, config.stoch * config.classes)
    for name in ("pol", "val"):
        assert dream[name].shape == (steps, N, config.units)
    for name in ("value", "slow", "reward", "cont"):
        assert dream[name].shape == (N, steps + 1)


def test_it_starts_in_the_posterior_states(dream):
    for name, start in zip(("deter", "stoch"), dream["start"], strict=True):
        expected = start.reshape(N, -1)
        np.testing.assert_array_equal(dream[name][0], expected)


def test_predictions_are_those_of_the_heads(model, dream):
    features = np.concatenate([dream["deter"], dream["stoch"]], axis=-1)
    nets = model.networks

    def heads(features):
        values = {
            name: head.distribution(head(features)).mean()
            for name, head in (
                ("value", nets.val),
                ("slow", nets.slowval),
                ("reward", nets.rew),
            )
        }
        return {**values, "cont": ops.sigmoid(nets.con(features))}

    expected = fast(heads)(ops.convert_to_tensor(features))
    for name, values in expected.items():
        np.testing.assert_allclose(
            dream[name][:, :-1].T, to_numpy(values), rtol=1e-4, atol=1e-5
        )


def test_first_layers_are_those_of_actor_and_critic(model, dream):
    features = np.concatenate([dream["deter"], dream["stoch"]], axis=-1)
    weights = model.official_weights()
    for name in ("pol", "val"):
        kernel = weights[f"{name}/mlp/linear0/kernel"]
        bias = weights[f"{name}/mlp/linear0/bias"]
        np.testing.assert_allclose(
            dream[name], features @ kernel + bias, rtol=1e-4, atol=1e-5
        )


def test_states_follow_from_states_and_actions(model, dream):
    """Step by step with the layers' own `call`, without joined products."""
    rssm = model.networks.dyn
    policy = model.networks.pol

    def step(deter, stoch):
        outputs = policy(ops.concatenate([deter, stoch], axis=-1))
        action = {
            key: distribution.sample(
                None
                if model.action_leaves[key].discrete
                else 0.5 * ops.ones_like(distribution.mean)
            )
            for key, distribution in policy.distributions(outputs).items()
        }
        encoded = concat_inputs(policy.leaves, action, "float32")
        deter = rssm.gru(deter, stoch, encoded)
        latents = rssm.latents(rssm.prior(rssm.tensors(), deter))
        one_hot = latents.one_hot(latents.mode())
        return action, deter, ops.reshape(one_hot, (N, -1))

    step = fast(step)
    for index in range(model.config.imag_length - 1):
        before = (dream["deter"][index], dream["stoch"][index])
        action, deter, stoch = step(*map(ops.convert_to_tensor, before))
        for key, value in action.items():
            np.testing.assert_allclose(
                dream["action"][key][index], to_numpy(value), atol=1e-5
            )
        np.testing.assert_allclose(
            dream["deter"][index + 1], to_numpy(deter), atol=1e-5
        )
        np.testing.assert_array_equal(
            dream["stoch"][index + 1], to_numpy(stoch)
        )
