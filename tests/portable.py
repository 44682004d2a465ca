"""A short run with files, made on every backend and under every dtype policy.

    KERAS_BACKEND=jax PYTHONPATH=.:tests python tests/portable.py

writes `golden/portable/jax_float32.zip` and `jax_mixed_bfloat16.zip`, and so
for the other backends.

Noise of updates comes from NumPy: Keras draws other numbers on each backend.
"""

import pathlib
import sys
import tempfile
import zipfile

import gymnasium
import keras
import numpy as np
from helpers import GOLDEN
from helpers import to_numpy
from keras import ops

import keras_dreamer as kd

BACKEND = keras.backend.backend()
FOLDER = GOLDEN / "portable"
POLICIES = ("float32", "mixed_bfloat16")
UPDATES = 4
SIZES = {
    **dict.fromkeys("deter hidden units".split(), 8),
    **dict.fromkeys("blocks stoch imag_length batch_size".split(), 2),
    **dict.fromkeys("imglayers encoder_layers decoder_layers".split(), 1),
    **dict.fromkeys("policy_layers value_layers".split(), 1),
    "classes": 4,
    "bins": 15,
    "batch_length": 4,
    # What is zero but for rounding must not become a full step.
    "eps": 1e-6,
    "lr": 1e-3,
    "warmup": 0,
}


class Point(gymnasium.Env):
    """A point that actions move, from a random place for a random time."""

    observation_space = gymnasium.spaces.Dict(
        place=gymnasium.spaces.Box(-np.inf, np.inf, (2,)),
        side=gymnasium.spaces.Discrete(3),
    )
    action_space = gymnasium.spaces.Box(-2.0, 2.0, (2,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = self.np_random.uniform(-1, 1, 2)
        self.left = int(self.np_random.integers(3, 8))
        return self._observation(), {}

    def step(self, action):
        self.place = 0.9 * self.place + 0.1 * np.asarray(action, "float64")
        self.left -= 1
        reward = -float(np.abs(self.place).sum())
        return self._observation(), reward, self.left == 0, False, {}

    def _observation(self):
        side = int(self.place[0] > 0) + int(self.place[1] > 0)
        return {"place": self.place.astype("float32"), "side": side}


class NoisyDataset(kd.replay.ReplayDataset):
    """Brings the noise of update number `updates` with each batch."""

    def __init__(self, replay, model, updates=0):
        super().__init__(replay)
        self.shapes = model.sample_noise(self.batch_size, self.batch_length)
        self.updates = updates

    def draw(self):
        rng = np.random.default_rng(self.updates)
        self.updates += 1
        noise = {
            name: rng.random(self.shapes[name].shape, dtype="float32")
            for name in ("posterior", "prior")
        }
        shape = self.shapes["action"]["action"].shape
        normal = rng.standard_normal(shape, dtype="float32")
        noise["action"] = {"action": normal}
        noise = keras.tree.map_structure(ops.convert_to_tensor, noise)
        return {**super().draw(), "noise": noise}


def make_envs():
    return kd.envs.make(Point, num_envs=2, seed=5)


def make_agent(policy, seed=3):
    envs = make_envs()
    return kd.Dreamer(
        envs.single_observation_space,
        envs.single_action_space,
        kd.Config(size="small", **SIZES),
        seed=seed,
        dtype=policy,
    )


def make_replay(model):
    dtype = model.compute_dtype
    return kd.replay.Replay(model.config, make_envs(), seed=5, dtype=dtype)


def take_noise_from_batch(model):
    model.update_terms = lambda batch: model.loss_terms(batch, batch["noise"])


def train(model, dataset, updates, callbacks=()):
    """Returns the loss of every update."""
    logs = model.fit(
        dataset,
        epochs=updates,
        steps_per_epoch=1,
        callbacks=list(callbacks),
        verbose=0,
    )
    return logs.history["loss"]


def run(model, replay):
    """Collects and trains; returns the losses of the updates."""
    take_noise_from_batch(model)
    driver = kd.Driver(make_envs(), model, replay)
    ratio = kd.callbacks.TrainRatio(driver, ratio=2)
    return train(model, NoisyDataset(replay, model), UPDATES, [ratio])


def go_on(model, replay):
    """Acts, trains once more on the same replay, acts again."""
    take_noise_from_batch(model)
    before = act(model)
    loss = train(model, NoisyDataset(replay, model, UPDATES), 1)
    return {"before": before, "loss": loss, "after": act(model)}


def act(model):
    observation = {
        "place": np.array([[0.1, -0.5], [0.0, 1.0]], "float32"),
        "side": np.array([2, 0]),
    }
    state = None
    for _ in range(2):
        action, state = model.act(observation, state, deterministic=True)
    return action


def contents(replay):
    """Returns the arrays of a replay, as it saves them."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "replay.npz"
        replay.save(path)
        with np.load(path) as file:
            return dict(file)


def state_of(model):
    """Returns all numbers of an agent and its optimizer, in two vectors."""
    named = model.official_weights()
    optimizer = [to_numpy(v).ravel() for v in model.optimizer.variables]
    return {
        "weights": np.concatenate([named[k].ravel() for k in sorted(named)]),
        "optimizer": np.concatenate(optimizer),
    }


def write(policy):
    model = make_agent(policy)
    model.compile()
    replay = make_replay(model)
    results = {"losses": run(model, replay), **state_of(model)}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        model.save(folder / "agent.keras")
        model.save_weights(folder / "agent.weights.h5")
        replay.save(folder / "replay.npz")
        results.update(go_on(model, replay))
        np.savez(folder / "results.npz", **results)
        pack(folder, FOLDER / f"{BACKEND}_{policy}.zip")
    print(policy, results["losses"], results["loss"])


def pack(folder, path):
    """Zips a folder, so that the same content gives the same bytes."""
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for member in sorted(folder.iterdir()):
            info = zipfile.ZipInfo(member.name)
            info.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(info, member.read_bytes())


def unpack(backend, policy, folder):
    """Unzips what a run wrote; returns its results."""
    with zipfile.ZipFile(FOLDER / f"{backend}_{policy}.zip") as file:
        file.extractall(folder)
    with np.load(folder / "results.npz") as results:
        return dict(results)


if __name__ == "__main__":
    for policy in sys.argv[1:] or POLICIES:
        write(policy)
