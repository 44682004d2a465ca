import agents
import numpy as np
import pytest
from helpers import to_numpy

from keras_dreamer.models.batch import one_hot_latents
from keras_dreamer.models.batch import prepare_batch

FLAGS = ("is_first", "is_last", "is_terminal")


@pytest.fixture(scope="module")
def model():
    return agents.make_agent()


@pytest.fixture
def batch(model):
    return agents.random_batch(model)


def test_trained_steps_come_after_the_context_row(model, batch):
    prepared = prepare_batch(model, batch)
    for name in ("reward", *FLAGS):
        np.testing.assert_array_equal(
            to_numpy(prepared[name]), batch[name][:, 1:]
        )
    for key, value in batch["observation"].items():
        np.testing.assert_array_equal(
            to_numpy(prepared["observation"][key]), value[:, 1:]
        )


def test_the_action_before_a_step_is_that_of_the_row_before(model, batch):
    prepared = prepare_batch(model, batch)
    for key, value in batch["action"].items():
        np.testing.assert_array_equal(
            to_numpy(prepared["previous_action"][key]), value[:, :-1]
        )


def test_the_state_before_is_the_stored_one(model, batch):
    deter, stoch = map(to_numpy, prepare_batch(model, batch)["carry"])
    np.testing.assert_array_equal(deter, batch["context"]["deter"])
    one_hot = stoch.reshape(3, 4, 4)
    np.testing.assert_array_equal(one_hot.sum(-1), np.ones((3, 4)))
    np.testing.assert_array_equal(one_hot.argmax(-1), batch["context"]["stoch"])


def test_without_context_a_window_starts_from_nothing():
    model = agents.make_agent(replay_context=0)
    batch = agents.random_batch(model)
    prepared = prepare_batch(model, batch)
    assert not any(to_numpy(state).any() for state in prepared["carry"])
    is_first = to_numpy(prepared["is_first"])
    assert is_first[:, 0].all()
    np.testing.assert_array_equal(is_first[:, 1:], batch["is_first"][:, 1:])
    move = to_numpy(prepared["previous_action"]["move"])
    assert not move[:, 0].any()
    np.testing.assert_array_equal(move[:, 1:], batch["action"]["move"][:, :-1])


def test_values_are_cast_to_what_the_model_computes_with(model, batch):
    batch["reward"] = batch["reward"].astype("float64")
    batch["observation"]["mode"] = batch["observation"]["mode"].astype("int64")
    batch["context"]["stoch"] = batch["context"]["stoch"].astype("uint8")
    prepared = prepare_batch(model, batch)
    assert to_numpy(prepared["reward"]).dtype == np.float32
    assert to_numpy(prepared["observation"]["mode"]).dtype == np.int32
    assert to_numpy(prepared["is_first"]).dtype == bool
    assert to_numpy(prepared["is_terminal"]).dtype == np.float32


def test_one_hot_latents(model):
    index = np.array([[0, 3, 1, 2]])
    expected = [[1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0]]
    np.testing.assert_array_equal(
        to_numpy(one_hot_latents(model, index)), expected
    )


@pytest.mark.parametrize(
    "name", ["reward", "is_terminal", "observation", "action", "context"]
)
def test_missing_parts_are_named(model, batch, name):
    del batch[name]
    with pytest.raises(ValueError, match=rf"lacks \['{name}.*ReplayDataset"):
        prepare_batch(model, batch)


@pytest.mark.parametrize("group", ["observation", "action"])
def test_missing_keys_are_named(model, batch, group):
    key = min(batch[group])
    del batch[group][key]
    with pytest.raises(ValueError, match=rf"lacks \['{group}/{key}'\]"):
        prepare_batch(model, batch)


@pytest.mark.parametrize(
    "group,key,shape",
    [
        ("observation", "position", (3, 7, 4)),
        ("observation", "mode", (3, 7, 1)),
        ("observation", "position", (3, 6, 3)),
        ("action", "move", (7, 3, 2)),
        ("context", "deter", (3, 32)),
        ("context", "stoch", (3, 4, 4)),
    ],
)
def test_wrong_shapes_are_named(model, batch, group, key, shape):
    batch[group][key] = np.zeros(shape, batch[group][key].dtype)
    with pytest.raises(ValueError) as error:
        prepare_batch(model, batch)
    assert f"{group}/{key} must have the shape" in str(error.value)
    assert f"Received: shape={shape}" in str(error.value)


@pytest.mark.parametrize("name", ["reward", "is_last", "is_terminal"])
def test_wrong_shapes_of_scalars_are_not_broadcast(model, batch, name):
    batch[name] = batch[name][..., None]
    with pytest.raises(ValueError, match=rf"{name} must .*\(3, 7\).*\(3, 7, 1"):
        prepare_batch(model, batch)
