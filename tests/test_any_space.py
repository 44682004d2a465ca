"""Any space trains and acts: trials T3, T4, T5 and T25."""

import agents
import gymnasium
import keras
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import batch_space
from scripted import tiny_config

import keras_dreamer as kd

CONFIG = tiny_config()
# XLA takes twice as long to compile an update as TensorFlow to trace it.
JIT = keras.backend.backend() == "jax"
INF = np.inf

NUMBERS = {
    "float64": spaces.Box(-INF, INF, (3,), np.float64),
    "int16": spaces.Box(-300, 300, (2,), np.int16),
    "scalar": spaces.Box(-1, 1, ()),
    "cube": spaces.Box(-1, 1, (4, 5, 6)),
    "matrix": spaces.Box(-1, 1, (16, 16)),
    "bytes": spaces.Box(0, 255, (5, 5), np.uint8),
}
CLASSES = {
    "bool": spaces.Box(0, 1, (2,), np.bool_),
    "binary": spaces.MultiBinary(4),
    "discrete": spaces.Discrete(5, start=-2),
    "multi": spaces.MultiDiscrete([[3, 2], [5, 4]]),
}
NESTED = spaces.Dict(
    reward=spaces.Box(-1, 1, (2,)),
    action=spaces.Discrete(3),
    is_first=spaces.Tuple(
        [spaces.Dict(is_last=spaces.MultiBinary(2)), spaces.Box(-1, 1, (2, 2))]
    ),
    context=spaces.Dict(deter=spaces.Box(-1, 1, ())),
)
ACTIONS = {
    "bounded": spaces.Box(-2, 2, (2,)),
    "from_zero": spaces.Box(0, 800, (1,)),
    "unbounded": spaces.Box(-INF, INF, (2,)),
    "matrix": spaces.Box(-1, 1, (2, 3)),
    "float64": spaces.Box(-1, 1, (1,), np.float64),
    "one": spaces.Discrete(1),
    "start": spaces.Discrete(3, start=5),
    "multi": spaces.MultiDiscrete([3, 2, 5]),
    "binary": spaces.MultiBinary(4),
}
# All of them at once: each further program takes XLA many seconds to compile.
# Dicts at the top are tested in models/test_acting.py.
OBSERVATION = spaces.Tuple([spaces.Dict(**NUMBERS, **CLASSES), NESTED])
ACTION = spaces.Tuple([spaces.Dict(ACTIONS), ACTIONS["start"]])
ENVS = 2


@pytest.fixture(scope="module", autouse=True)
def quick_backend():
    with agents.quick_backend():
        yield


class Sampled(gymnasium.Env):
    """Draws observations from its space; refuses actions outside of its."""

    def __init__(self, observation_space, action_space):
        self.observation_space = observation_space
        self.action_space = action_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.left = 4
        return self.observation_space.sample(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.left -= 1
        return self.observation_space.sample(), 1.0, not self.left, False, {}


@pytest.fixture(scope="module")
def run():
    """Trains from nothing; returns the model, its logs and the replay."""
    envs = kd.envs.make(lambda: Sampled(OBSERVATION, ACTION), ENVS)
    model = kd.Dreamer(
        envs.single_observation_space, envs.single_action_space, CONFIG
    )
    model.compile(jit_compile=JIT)
    replay = kd.replay.Replay(CONFIG, envs)
    driver = kd.Driver(envs, model, replay)
    history = model.fit(
        kd.replay.ReplayDataset(replay),
        epochs=1,
        steps_per_epoch=1000,
        callbacks=[kd.callbacks.TrainRatio(driver, 2, total_steps=45)],
        verbose=0,
    ).history
    return model, history, replay


def test_trains(run):
    _, history, _ = run
    assert history["updates"][-1] >= 2
    assert history["skipped"] == [0]
    for key, values in history.items():
        assert np.isfinite(values).all(), key


@pytest.mark.parametrize("deterministic", [True, False])
def test_acts(run, deterministic):
    model, *_ = run
    batch = batch_space(OBSERVATION, ENVS).sample()
    action, _ = model.act(batch, deterministic=deterministic)
    assert batch_space(ACTION, ENVS).contains(action)


def test_replay_holds_every_entry(run):
    model, _, replay = run
    stored = replay.sample(3)
    for leaves, kind in (
        (model.observation_leaves, "observation"),
        (model.action_leaves, "action"),
    ):
        assert stored[kind].keys() == leaves.keys()
        for key, leaf in leaves.items():
            value = stored[kind][key]
            assert value.shape[2:] == leaf.shape, key
            # The replay may hold classes in fewer bytes.
            assert (value.dtype.kind in "iu") == leaf.discrete, key


@pytest.mark.parametrize(
    "refused",
    [
        spaces.Box(0, 255, (5, 5, 5), np.uint8),
        spaces.Text(5),
        spaces.Sequence(spaces.Discrete(2)),
        spaces.Graph(spaces.Discrete(2), None),
        spaces.OneOf([spaces.Discrete(2), spaces.Discrete(3)]),
    ],
    ids=lambda space: type(space).__name__,
)
def test_refusals_come_at_construction_and_name_the_key(refused):
    nest = spaces.Dict(arm=spaces.Dict(odd=refused), x=spaces.Discrete(2))
    with pytest.raises(ValueError, match="observation entry 'arm/odd'"):
        kd.envs.make(lambda: Sampled(nest, spaces.Discrete(2)))
    with pytest.raises(ValueError, match="observation entry 'arm/odd'"):
        kd.Dreamer(nest, spaces.Discrete(2), CONFIG)
    with pytest.raises(ValueError, match="action entry 'arm/odd'"):
        kd.Dreamer(spaces.Discrete(2), nest, CONFIG)
