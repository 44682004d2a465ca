import json

import agents
import keras
import numpy as np
import pytest
from helpers import to_numpy

from keras_dreamer.models.dreamer import Dreamer

pytestmark = pytest.mark.usefixtures("quick_backend")


def flat(nest):
    return [to_numpy(value) for value in keras.tree.flatten(nest)]


def assert_nests_equal(actual, expected):
    for one, other in zip(flat(actual), flat(expected), strict=True):
        np.testing.assert_array_equal(one, other)


def test_config_round_trip_through_json():
    model = agents.make_agent(
        seed=7, name="walker", dtype="mixed_bfloat16", actent=1e-3
    )
    config = json.loads(json.dumps(model.get_config()))
    copy = Dreamer.from_config(config)
    assert copy.observation_space == model.observation_space
    assert copy.action_space == model.action_space
    assert copy.config == model.config
    assert copy.config.actent == 1e-3
    assert (copy.seed, copy.name) == (7, "walker")
    assert copy.dtype_policy.name == "mixed_bfloat16"
    # The seed decides the weights.
    assert_nests_equal(copy.official_weights(), model.official_weights())


def make_agent(observation=3, **fields):
    fields = {**agents.SHALLOW, **fields}
    space = agents.numbers(observation)
    return agents.make_agent(space, agents.bounded(2), **fields)


# Files.


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """An agent after 2 random updates and 3 actions, and its `.keras` file."""
    model = agents.quick_compile(make_agent(seed=3))
    batch = agents.random_batch(model)
    agents.train(model, batch, updates=2)
    for _ in range(3):
        model.act(np.ones((2, 3), "float32"))
    model.retnorm_low.assign(-1.5)
    path = tmp_path_factory.mktemp("saved") / "agent.keras"
    model.save(path)
    return model, batch, path


@pytest.fixture(scope="module")
def loaded(trained):
    return keras.saving.load_model(trained[2])


def test_file_brings_spaces_and_configuration(trained, loaded):
    model = trained[0]
    assert isinstance(loaded, Dreamer)
    assert loaded.observation_space == model.observation_space
    assert loaded.action_space == model.action_space
    assert loaded.config == model.config


def test_file_brings_weights_percentiles_and_slow_critic(trained, loaded):
    saved, found = (m.official_weights() for m in (trained[0], loaded))
    assert found.keys() == saved.keys()
    for name, value in saved.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)
    assert found["slowval_count/value"] == 2
    assert found["retnorm/lo/value"] == -1.5


def test_file_brings_the_optimizer(trained, loaded):
    model = trained[0]
    assert loaded.optimizer.get_config() == model.optimizer.get_config()
    assert int(loaded.optimizer.iterations) == 2
    assert_nests_equal(loaded.optimizer.variables, model.optimizer.variables)


def test_noise_goes_on_where_it_stopped(trained, loaded, tmp_path):
    model = trained[0]
    assert loaded.action_noise.drawn == model.action_noise.drawn == 3
    observation = np.ones((2, 3), "float32")
    for _ in range(2):
        assert_nests_equal(loaded.sample_noise(2, 3), model.sample_noise(2, 3))
        assert_nests_equal(loaded.act(observation), model.act(observation))


def test_training_goes_on_as_if_nothing_had_happened(trained, loaded):
    model, batch, _ = trained
    logs = [agents.train(m, batch, updates=2) for m in (model, loaded)]
    assert logs[0]["loss"] == logs[1]["loss"]
    assert logs[0].keys() == logs[1].keys()


def test_weights_file(trained, tmp_path):
    model = trained[0]
    model.save_weights(tmp_path / "agent.weights.h5")
    other = make_agent(seed=4)
    other.compile()
    other.load_weights(tmp_path / "agent.weights.h5")
    assert_nests_equal(other.official_weights(), model.official_weights())
    assert_nests_equal(other.optimizer.variables, model.optimizer.variables)
    assert_nests_equal(other.sample_noise(2, 3), model.sample_noise(2, 3))


@pytest.mark.parametrize(
    "observation,fields,message",
    [
        (3, {"units": 32}, r"'units': \(16, 32\)"),
        (3, {"deter": 128}, r"'deter': \(64, 128\)"),
        (3, {"value_layers": 2}, r"'value_layers': \(1, 2\)"),
        (4, {}, r"'observation/observation': .*3\], \['continuous', 4\]"),
    ],
)
def test_weights_of_another_size_are_refused(
    trained, tmp_path, observation, fields, message
):
    trained[0].save_weights(tmp_path / "agent.weights.h5")
    other = make_agent(observation, **fields)
    with pytest.raises(ValueError, match=message) as error:
        other.load_weights(tmp_path / "agent.weights.h5")
    assert "Make the model with the spaces" in str(error.value)


def test_file_of_an_agent_that_was_not_compiled(tmp_path):
    model = make_agent()
    model.save(tmp_path / "agent.keras")
    copy = keras.saving.load_model(tmp_path / "agent.keras")
    assert_nests_equal(copy.official_weights(), model.official_weights())
    assert copy.compiled is False
