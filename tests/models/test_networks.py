import agents
import keras
import numpy as np
import pytest
from helpers import to_numpy


@pytest.fixture(scope="module")
def model():
    return agents.make_agent()


def test_weights_have_the_official_names(model):
    golden = agents.load_golden("head_hybrid")
    networks = agents.golden_agent("head_hybrid", golden).networks
    named = networks.named_weights()
    expected = agents.with_prefix(golden, "param/")
    assert set(named) == {
        k for k in expected if "retnorm" not in k and "slowval_count" not in k
    }
    for name, variable in named.items():
        assert tuple(variable.shape) == expected[name].shape, name


def test_all_weights_are_named_once(model):
    named = model.networks.named_weights()
    assert len(named) == len(model.networks.weights)
    assert len({id(variable) for variable in named.values()}) == len(named)


def test_slow_critic_starts_as_a_copy_and_is_not_trained(model):
    nets = model.networks
    for slow, value in zip(nets.slowval.weights, nets.val.weights, strict=True):
        np.testing.assert_array_equal(to_numpy(slow), to_numpy(value))
    trained = {id(v) for v in nets.trainable_variables}
    assert not trained & {id(v) for v in nets.slowval.weights}
    assert len(trained) == len(nets.weights) - len(nets.slowval.weights)


def test_networks_start_different_from_each_other(model):
    # The same layer in the critic and the actor: one seed each.
    named = model.networks.named_weights()
    value, policy = (
        to_numpy(named[f"{net}/mlp/linear0/kernel"]) for net in ("val", "pol")
    )
    assert value.shape == policy.shape
    assert (value != policy).all()


def test_the_seed_decides_the_weights(model):
    same, other = agents.make_agent(), agents.make_agent(seed=1)
    name = "dyn/dyngru/kernel"
    start = to_numpy(model.networks.named_weights()[name])
    np.testing.assert_array_equal(
        start, to_numpy(same.networks.named_weights()[name])
    )
    assert (start != to_numpy(other.networks.named_weights()[name])).any()


def test_reward_and_value_outputs_start_at_zero(model):
    named = model.networks.named_weights()
    for net in ("rew", "val", "slowval"):
        assert not to_numpy(named[f"{net}/head/logits/kernel"]).any()


def test_acting_needs_encoder_model_and_actor_only(model):
    nets = model.networks
    acting = {id(v) for v in nets.acting_weights()}
    for part in (nets.dec, nets.rew, nets.con, nets.val, nets.slowval):
        assert not acting & {id(v) for v in part.weights}
    for part in (nets.enc, nets.dyn, nets.pol):
        assert acting >= {id(v) for v in part.weights}


def test_dtype_reaches_all_layers_and_leaves_the_global_policy():
    nets = agents.make_agent(dtype="mixed_bfloat16").networks
    layers = nets._flatten_layers()
    assert {layer.compute_dtype for layer in layers} == {"bfloat16"}
    assert {v.dtype for v in nets.weights} == {"float32"}
    assert keras.config.dtype_policy().name == "float32"
