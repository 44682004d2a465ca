import json

import agents
import gymnasium
import keras
import pytest

from keras_dreamer.checkpoints import settings
from keras_dreamer.models.fitting import recipe_optimizer


def make(observation=3, optimizer=None, **fields):
    """Returns what the settings of a model depend on, without its weights."""
    model = StandIn()
    model.config = agents.Config(**{**agents.TINY, **fields})
    model.observation_space = agents.numbers(observation)
    model.action_space = gymnasium.spaces.Discrete(3)
    model.optimizer = optimizer or recipe_optimizer(model.config)
    model.seed, model.name = 0, "dreamer"
    return model


class StandIn(agents.Dreamer):
    """`Dreamer` whose constructor does nothing."""

    config = observation_space = action_space = optimizer = None
    seed = name = None
    dtype_policy = keras.DTypePolicy("float32")

    def __new__(cls):
        return object.__new__(cls)

    def __init__(self):
        pass

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)


SAVED = json.loads(json.dumps(settings.describe(make())))


def test_same_settings_pass():
    settings.check("run", SAVED, make())


def test_budget_ratio_dtype_and_learning_rate_may_differ():
    model = make(
        env_steps=7,
        train_ratio=3.0,
    )
    model.dtype_policy = keras.DTypePolicy("mixed_bfloat16")
    model.optimizer.learning_rate = 0.5
    settings.check("run", SAVED, model)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"deter": 128}, "differs in deter: 128 here, 64 in the checkpoint. M"),
        ({"size": "1m"}, "size: '1m' here, 'small' in the checkpoint"),
        (
            {"recipe": "head"},
            "recipe: 'head' here, 'paper'.*decoder_outscale: 1.0 here, 0.1.*"
            "imag_start: 'model' here, 'data' in the checkpoint",
        ),
        ({"observation": 4}, r"observation_space: Box\(.*4.*\) here, Box\(.*3"),
        (
            {"optimizer": keras.optimizers.SGD(0.1)},
            "optimizer: 'SGD' here, 'LaProp' in.*optimizer/agc: None here, 0.3",
        ),
        ({"agc": 0.1}, "agc: 0.1 here, 0.3.*optimizer/agc: 0.1 here"),
        ({"loss_scales": {"rep": 0.2}}, "loss_scales: .*'rep': 0.2.* here"),
    ],
)
def test_what_differs_is_named(change, message):
    with pytest.raises(ValueError, match=message) as error:
        settings.check("run", SAVED, make(**change))
    assert "Make the model with the Config of the run" in str(error.value)
    assert "hidden" not in str(error.value)
