"""What a seed fixes, and that updates reach acting and the slow critic."""

import agents
import keras
import numpy as np
import pytest
from helpers import to_numpy
from scripted import tiny_config

import keras_dreamer as kd

CONFIG = tiny_config(lr=1e-2, warmup=0)
# XLA takes twice as long to compile an update as TensorFlow to trace it.
JIT = keras.backend.backend() == "jax"
UPDATES = 50


@pytest.fixture(scope="module", autouse=True)
def quick_backend():
    with agents.quick_backend():
        yield


class Watch(keras.callbacks.Callback):
    """Reads weights and acts after every update, which syncs JAX's state."""

    def __init__(self):
        super().__init__()
        self.critics, self.before, self.after = [], [], []

    def act(self):
        observation = np.ones((2, 3), "float32")
        _, state = self._model.act(observation, deterministic=True)
        return state["action"]["action"]

    def on_train_batch_end(self, batch, logs=None):
        self.before.append(self.act())  # As the driver acts, during `fit`.
        networks = self.model.networks  # Keras syncs the model here.
        self.critics.append(
            [
                [to_numpy(weight).copy() for weight in critic.weights]
                for critic in (networks.val, networks.slowval)
            ]
        )
        self.after.append(self.act())


def command(seed, callbacks=()):
    """Does what a training script does, from nothing."""
    envs = kd.envs.make("gym:Pendulum-v1", num_envs=2, seed=seed)
    model = kd.Dreamer(
        envs.single_observation_space,
        envs.single_action_space,
        CONFIG,
        seed=seed,
    )
    model.compile(jit_compile=JIT)
    initial = list(map(to_numpy, model.trainable_variables))
    replay = kd.replay.Replay(CONFIG, envs, seed=seed)
    driver = kd.Driver(envs, model, replay)
    model.fit(
        kd.replay.ReplayDataset(replay),
        steps_per_epoch=UPDATES // 2,
        epochs=2,
        callbacks=[kd.callbacks.TrainRatio(driver, ratio=6), *callbacks],
        verbose=0,
    )
    return model, replay, initial


def contents(model, replay):
    """Returns everything that a run has changed."""
    variables = model.variables + model.optimizer.variables
    rng = replay._rng.bit_generator.state["state"]
    return {
        **{index: to_numpy(v) for index, v in enumerate(variables)},
        **{name: v.copy() for name, v in replay._pool.arrays.items()},
        "rng": np.array(str(rng)),
        "actions_drawn": model.action_noise.drawn,
    }


@pytest.fixture(scope="module")
def watch():
    return Watch()


@pytest.fixture(scope="module")
def watched(watch):
    return command(seed=3, callbacks=[watch])


def test_same_seed_gives_the_same_run(watched):
    # Also when callbacks look at the model between the updates.
    model, replay, initial = watched
    other, other_replay, other_initial = command(seed=3)
    for one, two in zip(initial, other_initial, strict=True):
        np.testing.assert_array_equal(one, two)
    expected, actual = contents(model, replay), contents(other, other_replay)
    assert expected.keys() == actual.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(actual[name], value, err_msg=name)
    assert int(to_numpy(other.optimizer.iterations)) == UPDATES
    changed = [
        np.any(start != to_numpy(end))
        for start, end in zip(initial, other.trainable_variables, strict=True)
    ]
    assert all(changed)


def test_other_seed_gives_another_run(watched):
    _, replay, initial = watched
    envs = kd.envs.make("gym:Pendulum-v1", num_envs=2, seed=4)
    model = kd.Dreamer(
        envs.single_observation_space, envs.single_action_space, CONFIG, seed=4
    )
    kernels = [v for v in model.trainable_variables if v.name == "kernel"]
    for kernel in kernels:
        same = [np.array_equal(to_numpy(kernel), start) for start in initial]
        zero = not np.any(to_numpy(kernel))  # Reward and value outputs.
        assert zero or not any(same), kernel.path
    driver = kd.Driver(envs, model, kd.replay.Replay(CONFIG, envs))
    driver.advance(2)
    first = replay._pool.arrays["observation/observation"][[0, 8]]
    other = driver.replay._pool.arrays["observation/observation"][[0, 8]]
    # Every environment has its own seed, too.
    assert len(np.unique(np.concatenate([first, other]), axis=0)) == 4


def test_acting_uses_the_weights_of_the_last_update(watched, watch):
    for before, after in zip(watch.before, watch.after, strict=True):
        np.testing.assert_array_equal(before, after)
    for one, two in zip(watch.before, watch.before[1:], strict=False):
        assert np.all(one != two)


def test_slow_critic_is_the_average_of_the_critics(watched, watch):
    assert len(watch.critics) == UPDATES
    # Under the recipe "paper" the first update copies the critic.
    critic, expected = watch.critics[0]
    for weight, slow in zip(critic, expected, strict=True):
        np.testing.assert_array_equal(slow, weight)
    for critic, slow in watch.critics[1:]:
        expected = [
            0.02 * weight + 0.98 * before
            for weight, before in zip(critic, expected, strict=True)
        ]
        for actual, value in zip(slow, expected, strict=True):
            np.testing.assert_allclose(actual, value, rtol=1e-4, atol=1e-6)
    assert np.any(np.abs(critic[0] - expected[0]) > 1e-3)
