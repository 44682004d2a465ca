import gymnasium
import numpy as np
import pytest

from keras_dreamer.replay.schema import Schema
from keras_dreamer.replay.schema import numpy_dtype

MIXED = gymnasium.spaces.Dict(
    {
        "arm": gymnasium.spaces.Dict(
            {"angles": gymnasium.spaces.Box(-1, 1, (2, 3))}
        ),
        "mode": gymnasium.spaces.Discrete(4),
        "reward": gymnasium.spaces.Box(-1, 1, ()),
    }
)


def make_schema(small, observation=MIXED, **config):
    envs = small.envs(2, observation=observation)
    return Schema(small.Config(**config), envs, "float32")


def make_mixed_step(small):
    observation = {
        "arm/angles": np.zeros((2, 3)),
        "mode": 3,
        "reward": 0.0,
    }
    return {**small.steps(0), "observation": observation}


def test_fields_of_mixed_spaces(small):
    fields = make_schema(small).fields
    assert fields["observation/arm/angles"] == ((2, 3), np.dtype("float32"))
    assert fields["observation/mode"] == ((), np.dtype("int32"))
    assert fields["observation/reward"] == ((), np.dtype("float32"))
    assert fields["reward"] == ((), np.dtype("float32"))
    assert fields["is_terminal"] == ((), np.dtype(bool))
    assert fields["context/deter"] == ((2,), np.dtype("float32"))
    assert fields["context/stoch"] == ((3,), np.dtype("uint8"))


def test_without_context_no_latents_are_stored(small):
    schema = make_schema(small, replay_context=0)
    assert not schema.latents
    flat = schema.flatten(make_mixed_step(small), ())
    assert not [name for name in flat if name.startswith("context")]


@pytest.mark.parametrize(
    "classes, dtype", [(256, "uint8"), (257, "uint16"), (65537, "uint32")]
)
def test_stoch_is_the_smallest_unsigned_integer(small, classes, dtype):
    schema = make_schema(small, classes=classes)
    assert schema.fields["context/stoch"][1] == np.dtype(dtype)


def test_nest_undoes_flatten(small):
    schema = make_schema(small)
    step = make_mixed_step(small)
    nest = schema.nest(schema.flatten(step, ()))
    assert set(nest) == set(step)
    assert set(nest["observation"]) == {"arm/angles", "mode", "reward"}
    assert nest["observation"]["mode"] == 3


def test_bfloat16_is_a_numpy_dtype():
    assert numpy_dtype("bfloat16").itemsize == 2
    assert numpy_dtype("float16") == np.float16


def test_names_missing_and_unknown_keys(small):
    schema = make_schema(small, observation=small.box)
    step = small.steps(0)
    del step["reward"]
    step["rewards"] = 0.0
    message = r"missing=\['reward'\], unknown=\['rewards'\].*Add and remove"
    with pytest.raises(ValueError, match=message):
        schema.flatten(step, ())


def test_names_a_missing_latent(small):
    schema = make_schema(small, observation=small.box)
    step = small.steps(0)
    del step["context"]["stoch"]
    with pytest.raises(ValueError, match=r"missing=\['context/stoch'\]"):
        schema.flatten(step, ())


def test_names_a_key_that_is_not_nested(small):
    schema = make_schema(small, observation=small.box)
    step = {**small.steps(0), "action": np.zeros(2)}
    message = r"missing=\['action/action'\], unknown=\['action'\]"
    with pytest.raises(ValueError, match=message):
        schema.flatten(step, ())


def test_names_the_key_with_a_wrong_shape(small):
    schema = make_schema(small, observation=small.box)
    step = {**small.steps(0), "action": {"action": np.zeros(3)}}
    message = r"`action/action` .* \(2,\)\. Received: shape=\(3,\)\. Give"
    with pytest.raises(ValueError, match=message):
        schema.flatten(step, ())
    with pytest.raises(ValueError, match=r"shape \(4, 2\)"):
        schema.flatten(small.steps(np.arange(3)), (4,))


def test_latents_need_one_entry_for_each_step_id(small):
    schema = make_schema(small)
    latents = small.latents(np.zeros((2, 4), int))
    assert set(schema.flatten_latents(latents, (2, 4))) == set(schema.latents)
    message = r"\(2, 5, 2\)\. Received: shape=\(2, 4, 2\)\. Leave the context"
    with pytest.raises(ValueError, match=message):
        schema.flatten_latents(latents, (2, 5))
    with pytest.raises(ValueError, match=r"Received: \['deter'\]"):
        schema.flatten_latents({"deter": latents["deter"]}, (2, 4))
