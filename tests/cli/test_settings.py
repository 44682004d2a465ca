import json
import types

import keras
import pytest

from keras_dreamer_cli import settings

FLAGS = (
    "preset size recipe ratio steps envs seed dtype checkpoint_minutes "
    "evaluate_every on_env_error"
).split()


def command(**given):
    return types.SimpleNamespace(
        **{**dict.fromkeys(FLAGS), "env": None, "wandb": False, **given}
    )


@pytest.fixture
def saved():
    """What a run has written: it comes back through JSON."""
    given = command(env="gym:CartPole-v1", seed=3, steps=500, recipe="head")
    return json.loads(json.dumps(settings.new(given)))


def test_defaults():
    found = settings.new(command(env="gym:CartPole-v1"))
    assert (found["seed"], found["dtype"]) == (0, "float32")
    assert found["checkpoint_minutes"] == 10.0
    assert (found["preset"], found["envs"]) == ("gym-small", 4)


def test_the_command_goes_before_the_defaults():
    given = command(
        env="dmc:walker_walk", seed=7, dtype="mixed_bfloat16", steps=9, envs=2
    )
    found = settings.new(given)
    assert (found["seed"], found["dtype"]) == (7, "mixed_bfloat16")
    assert (found["config"]["env_steps"], found["envs"]) == (9, 2)


def test_a_resumed_run_is_as_it_was(saved):
    assert settings.resumed(command(), saved) == saved


def test_what_is_given_again_may_be_the_same(saved):
    again = command(env="gym:CartPole-v1", seed=3, size="small", recipe="head")
    assert settings.resumed(again, saved) == saved


def test_budget_ratio_dtype_and_time_may_change(saved):
    given = command(
        steps=900, ratio=8.0, dtype="mixed_bfloat16", checkpoint_minutes=1.0
    )
    found = settings.resumed(given, saved)
    changed = {k for k in found if found[k] != saved[k]}
    assert changed == {"dtype", "checkpoint_minutes", "config"}
    fields = {
        k: v for k, v in found["config"].items() if v != saved["config"][k]
    }
    assert fields == {"env_steps": 900, "train_ratio": 8.0}


def test_a_run_of_an_older_version_goes_on(saved):
    del saved["on_env_error"]
    assert settings.resumed(command(), saved)["on_env_error"] == "raise"
    given = command(on_env_error="restart")
    assert settings.resumed(given, saved)["on_env_error"] == "restart"


def test_versions_are_those_of_now(saved):
    saved.update(keras="2.0", backend="another")
    found = settings.resumed(command(), saved)
    assert found["keras"] == keras.__version__
    assert found["backend"] == keras.backend.backend()


def test_wandb_stays_on(saved):
    saved["wandb"] = True
    assert settings.resumed(command(), saved)["wandb"]


@pytest.mark.parametrize(
    "field, value",
    [
        ("env", "gym:Pendulum-v1"),
        ("envs", 1),
        ("seed", 0),
        ("preset", "dmc-proprio-head"),
        ("size", "1m"),
        ("recipe", "paper"),
    ],
)
def test_the_rest_must_not_change(saved, field, value):
    with pytest.raises(ValueError, match=f"{field}: {value!r} here.*Leave"):
        settings.resumed(command(**{field: value}), saved)


def test_all_differences_are_named(saved):
    with pytest.raises(ValueError, match="seed: 1 here, 3 in the run; size"):
        settings.resumed(command(seed=1, size="1m"), saved)
