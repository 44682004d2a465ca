"""Rewards of any scale lead to the same action: trial T7."""

import types

import agents
import gymnasium
import keras
import numpy as np
import pytest
from scripted import tiny_config

import keras_dreamer as kd

pytestmark = [
    pytest.mark.slow,
    # That all backends learn the same is tested in models/test_trajectory.py.
    pytest.mark.skipif(
        keras.backend.backend() != "jax", reason="minutes on other backends"
    ),
]
CONFIG = tiny_config(lr=1e-2, warmup=0, bins=255)
OBSERVATION = gymnasium.spaces.Box(-1, 1, (1,))
ACTION = gymnasium.spaces.Discrete(3)
BEST = 1


def experience(scale):
    """Returns a replay of episodes of one step with random actions."""
    envs = types.SimpleNamespace(
        num_envs=1,
        single_observation_space=OBSERVATION,
        single_action_space=ACTION,
    )
    replay = kd.replay.Replay(CONFIG, envs)
    rng = np.random.default_rng(0)
    for action in rng.integers(3, size=300):
        for row in range(2):
            step = {
                "observation": {"observation": np.full(1, row)},
                "action": {"action": action * (1 - row)},
                "reward": scale * row * (action == BEST),
                "is_first": row == 0,
                "is_last": row == 1,
                "is_terminal": row == 1,
            }
            replay.add(step, 0)
    return replay


@pytest.fixture(scope="module")
def model():
    with agents.quick_backend():
        model = kd.Dreamer(OBSERVATION, ACTION, CONFIG)
        model.compile()
        model.optimizer.build(model.trainable_variables)
        yield model


@pytest.fixture(scope="module")
def start(model):
    variables = model.variables + model.optimizer.variables
    return [keras.ops.convert_to_numpy(v).copy() for v in variables]


@pytest.mark.parametrize(
    ("scale", "updates"), [(1e-3, 1250), (1.0, 400), (1e3, 400), (1e6, 400)]
)
def test_rewards_of_any_scale(model, start, scale, updates):
    # Returns are divided by their range or by 1, whichever is more: rewards of
    # 1e-3 are as small as the entropy bonus and take longer.
    # From the same start, so that one compilation serves all scales.
    variables = model.variables + model.optimizer.variables
    for variable, value in zip(variables, start, strict=True):
        variable.assign(value)
    history = model.fit(
        kd.replay.ReplayDataset(experience(scale)),
        epochs=1,
        steps_per_epoch=updates,
        verbose=0,
    ).history
    for name, values in history.items():
        assert np.isfinite(values).all(), name
    assert history["skipped"] == [0]
    action, _ = model.act(np.zeros((1, 1), "float32"), deterministic=True)
    assert action.tolist() == [BEST]
