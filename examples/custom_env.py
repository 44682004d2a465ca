"""Trains on an environment of one's own: find the target on a line.

    python examples/custom_env.py

It takes a few minutes on two cores. Copy it and replace `Line`.
"""

import os

os.environ.setdefault("KERAS_BACKEND", "jax")

import gymnasium  # noqa: E402
import numpy as np  # noqa: E402

import keras_dreamer as kd  # noqa: E402


class Line(gymnasium.Env):
    """A point on a line that shall reach a target and stay there."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-0.3, 0.3, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.point, self.target = self.np_random.uniform(-1, 1, 2)
        self.steps = 0
        return self.observe(), {}

    def step(self, action):
        self.point = np.clip(self.point + action[0], -1, 1)
        self.steps += 1
        reward = 1.0 - abs(self.point - self.target)
        return self.observe(), reward, False, self.steps >= 15, {}

    def observe(self):
        return np.array([self.point, self.target], np.float32)


def train(steps=4000, seed=0):
    """Returns the mean returns before and after training, and the model."""
    kd.configure_runtime()
    envs = kd.envs.make(Line, num_envs=4, seed=seed)
    # Small and quick: the published recipe is made for much longer runs.
    config = kd.Config(
        size="small",
        batch_size=8,
        batch_length=16,
        lr=1e-3,
        warmup=50,
        horizon=15,
    )
    model = kd.Dreamer(
        envs.single_observation_space,
        envs.single_action_space,
        config,
        seed=seed,
    )
    model.compile()
    others = kd.envs.make(Line, num_envs=10, seed=seed + 1)
    before = kd.evaluate(model, others, episodes=20).mean
    print(f"Return before training: {before:.1f} of 15")
    replay = kd.replay.Replay(config, envs, seed=seed)
    driver = kd.Driver(envs, model, replay)
    model.fit(
        kd.replay.ReplayDataset(replay),
        epochs=1000,
        steps_per_epoch=100,
        callbacks=[kd.callbacks.TrainRatio(driver, 32, total_steps=steps)],
        verbose=2,
    )
    after = kd.evaluate(model, others, episodes=20).mean
    print(f"Return after training: {after:.1f} of 15")
    return before, after, model


if __name__ == "__main__":
    train()
