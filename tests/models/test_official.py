import agents
import numpy as np
import pytest


@pytest.fixture(scope="module")
def model():
    return agents.make_agent()


@pytest.fixture
def params(model):
    return model.official_weights()


def test_round_trip_into_another_agent(model):
    weights = agents.random_weights(model)
    weights["retnorm/lo/value"] = np.float32(-3)
    weights["retnorm/hi/value"] = np.float32(7)
    weights["slowval_count/value"] = np.int32(5)
    other = agents.make_agent(seed=1)
    other.load_official_weights(weights)
    found = other.official_weights()
    assert found.keys() == weights.keys()
    for name, value in weights.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)
    assert int(found["slowval_count/value"]) == 5


def test_weights_go_through_an_npz_file(model, tmp_path):
    # As docs/data.md prints it.
    weights = agents.random_weights(model)
    model.load_official_weights(weights)
    np.savez(tmp_path / "weights.npz", **model.official_weights())
    other = agents.make_agent(seed=1)
    with np.load(tmp_path / "weights.npz") as file:
        assert set(file) == set(model.official_weights())
        other.load_official_weights(file)
    for name, value in other.official_weights().items():
        np.testing.assert_array_equal(value, weights[name], err_msg=name)


def test_a_file_of_another_agent_is_refused(model, tmp_path):
    np.savez(tmp_path / "weights.npz", **model.official_weights())
    other = agents.make_agent(units=8)
    with (
        np.load(tmp_path / "weights.npz") as file,
        pytest.raises(ValueError, match="enc/mlp.*shapes|shapes.*enc/mlp"),
    ):
        other.load_official_weights(file)


def test_exported_arrays_are_copies(model, params):
    params["val/mlp/linear0/kernel"][...] = 0
    assert model.official_weights()["val/mlp/linear0/kernel"].any()


def test_entries_of_other_modules_are_ignored(model, params):
    before = model.official_weights()
    model.load_official_weights({**params, "opt/state/0": np.zeros(3)})
    assert model.official_weights().keys() == before.keys()


def test_older_checkpoints_have_no_slow_count(model, params):
    del params["slowval_count/value"]
    model.load_official_weights(params)


def test_missing_weights_are_named(model, params):
    del params["dyn/dynin0/kernel"]
    with pytest.raises(
        ValueError, match=r"lack \['dyn/dynin0/kernel'\].*same spaces"
    ):
        model.load_official_weights(params)


def test_wrong_shapes_are_named_and_nothing_is_loaded(model, params):
    before = model.official_weights()
    params = {name: value + 1 for name, value in params.items()}
    params["dyn/dynin0/kernel"] = np.zeros((64, 32), "float32")
    with pytest.raises(
        ValueError,
        match=r"dyn/dynin0/kernel': \(\(64, 32\), \(64, 16\)\).*Use the size",
    ):
        model.load_official_weights(params)
    after = model.official_weights()
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value)
