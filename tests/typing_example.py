"""A user's program, for mypy: nothing here runs."""

from typing import Any
from typing import assert_type

import numpy as np

import keras_dreamer as kd
from keras_dreamer.distributions import Categorical

envs = kd.envs.make(
    "dmc:walker_walk", num_envs=16, action_repeat=2, seed=0, mode="process"
)
assert_type(envs, kd.envs.Environments)
config = kd.Config(size="12m", recipe="paper", batch_size=8)
assert_type(config.replace(lr=1e-4), kd.Config)
assert_type(config.discount, float)
assert_type(config.loss_scales["rep"], float)
model = kd.Dreamer(
    envs.single_observation_space, envs.single_action_space, config, seed=1
)
model.compile()
replay = kd.replay.Replay(config, envs, capacity=100_000, directory="rows")
assert_type(len(replay), int)
assert_type(replay.nbytes, int)
dataset = kd.replay.ReplayDataset(replay, batch_size=16)
driver = kd.Driver(envs, model, replay)
assert_type(driver.step, int)
callbacks = [
    kd.callbacks.TrainRatio(driver, ratio=512, total_steps=250_000),
    kd.callbacks.LatentWriteBack(),
    kd.callbacks.SlowCritic(rate=0.02),
    kd.callbacks.RunLog("runs/walker", wandb=False),
    kd.callbacks.Checkpoint("runs/walker", every="10 minutes", keep=2),
]
resumed = kd.resume("runs/walker", model, dataset, callbacks)
assert_type(resumed.updates, int)
history = model.fit(dataset, epochs=125, steps_per_epoch=1000)
assert_type(replay.sample(16), dict[str, Any])
action, state = model.act(np.zeros((1, 3)), deterministic=True)
policy = kd.Policy.load("agent.keras")
assert_type(policy, kd.Policy)
action, state = policy.predict(np.zeros(3), state)
returns = kd.evaluate(model, envs, episodes=20)
assert_type(returns.mean(), Any)
kd.configure_runtime(cache=None)
optimizer = kd.optimizers.LaProp(learning_rate=1e-4, warmup=0)

# The parts of the agent, on their own.
leaves = kd.spaces.leaves(envs.single_observation_space, "observation")
assert_type(leaves, dict[str, kd.spaces.Leaf])
values = kd.spaces.to_model(envs.single_action_space, action, "action")
assert_type(values, dict[str, np.ndarray])
encoder = kd.layers.Encoder(leaves, layers=2, units=64, dtype="float32")
assert_type(encoder.compute_output_shape({"x": (None, 3)})[-1], int | None)
rssm = kd.layers.RSSM(deter=64, hidden=32, stoch=4, classes=4, seed=0)
deter, stoch = rssm.initial(batch_size=2)
logits = rssm.prior(rssm.tensors(), deter)
assert_type(rssm.latents(logits), Categorical)
head = kd.layers.TwoHotHead(layers=1, units=64)
reward = head.distribution(head(encoder({"x": np.zeros((2, 3))})))
assert_type(reward, kd.losses.TwoHot)
loss = kd.losses.value_loss(reward, np.ones(2), np.ones(2), slow_scale=1.0)
assert_type(loss + 1.0, Any)

# What mypy must find wrong.
kd.Config(recipe=1)  # type: ignore[arg-type]
kd.envs.make("gym:Pendulum-v1", num_envs="2")  # type: ignore[arg-type]
kd.evaluate(model, envs, episodes="20")  # type: ignore[arg-type]
kd.callbacks.SlowCritic("fast")  # type: ignore[arg-type]
driver.advance("all")  # type: ignore[arg-type]
kd.layers.BlockGRU(64, hidden="32")  # type: ignore[arg-type]
kd.layers.Encoder(["x"])  # type: ignore[arg-type]
kd.layers.RSSM(unimix="1%")  # type: ignore[arg-type]
kd.losses.symexp_bins("255")  # type: ignore[arg-type]
kd.losses.value_loss(loss, loss, loss, "1")  # type: ignore[arg-type]
kd.spaces.leaves(leaves, "action")  # type: ignore[arg-type]
