"""Balances CartPole: trains a small agent until 20 episodes average 475.

    python examples/cartpole.py
    python examples/cartpole.py --seed 1 --times 3 --results examples/results

`--times 3` goes on to three times as many steps and evaluates again at twice
and three times as many. With `--logdir runs/cartpole` the run is saved every
few minutes, and the same command with `--resume` goes on with it.
"""

import argparse
import os
import pathlib
import time

os.environ.setdefault("KERAS_BACKEND", "jax")

import keras  # noqa: E402

import keras_dreamer as kd  # noqa: E402

ENV = "gym:CartPole-v1"
SOLVED = 475.0

# CartPole needs thousands of steps, not the recipe's hundreds of thousands:
# with the recipe's learning rate and warm-up it would hardly have begun. So
# the rate is 25 times higher and the warm-up shorter, and batches are a quarter
# as long, with one update a step, so that two cores see progress at once.
SETTINGS = {
    "size": "small",
    "lr": 1e-3,
    "warmup": 200,
    "batch_size": 16,
    "batch_length": 16,
    "train_ratio": 256,
    "action_repeat": 1,
}


class UntilSolved(kd.callbacks.Resumable, keras.callbacks.Callback):
    """Prints a line an epoch; stops when evaluation says it is solved.

    Evaluation costs time, so it waits for good training episodes.
    """

    def __init__(self, envs, times):
        super().__init__()
        self.envs = envs
        self.times = times
        self.solved_at = None
        self.multiple = 1
        self.started = time.time()

    def get_state(self):
        return {"solved_at": self.solved_at, "multiple": self.multiple}

    def set_state(self, state):
        self.solved_at = state["solved_at"]
        self.multiple = state["multiple"]

    def on_epoch_end(self, epoch, logs=None):
        logs = logs or {}
        steps, score = logs["env_steps"], logs["episode/return"]
        print(
            f"{time.time() - self.started:5.0f} s  {steps:6d} steps  "
            f"{logs['updates']:6d} updates  return {score:6.1f}  "
            f"loss {logs['loss']:6.2f}  {logs['updates/s']:5.1f} updates/s",
            flush=True,
        )
        if self.solved_at is None:
            good = score > 0.9 * SOLVED
            if good and self.score(f"After {steps} steps") >= SOLVED:
                self.solved_at = steps
        elif steps >= (self.multiple + 1) * self.solved_at:
            self.multiple += 1
            self.score(f"After {self.multiple} times as many steps")
        if self.solved_at is not None and self.multiple >= self.times:
            self.model.stop_training = True

    def score(self, when):
        scores = kd.evaluate(self.model, self.envs, episodes=20)
        print(
            f"{when}: {scores.mean:.1f} over 20 evaluation episodes "
            f"(lowest {scores.min:.0f})",
            flush=True,
        )
        return scores.mean


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--results", default="", help="folder for CSV, model")
    parser.add_argument("--logdir", default="", help="folder for checkpoints")
    parser.add_argument(
        "--resume", action="store_true", help="go on with the run in --logdir"
    )
    args = parser.parse_args()
    if args.resume and not args.logdir:
        parser.error("--resume needs --logdir, the folder of the run")

    kd.configure_runtime()
    envs = kd.envs.make(ENV, num_envs=4, seed=args.seed)
    config = kd.Config(**SETTINGS)
    model = kd.Dreamer(
        envs.single_observation_space,
        envs.single_action_space,
        config,
        seed=args.seed,
    )
    model.compile()
    replay = kd.replay.Replay(config, envs, seed=args.seed)
    driver = kd.Driver(envs, model, replay)
    watch = UntilSolved(
        kd.envs.make(ENV, num_envs=10, seed=args.seed + 1000), args.times
    )
    callbacks = [
        kd.callbacks.TrainRatio(driver, config.train_ratio, args.steps),
        watch,
    ]
    if args.results:
        folder = pathlib.Path(args.results)
        folder.mkdir(parents=True, exist_ok=True)
        name = str(folder / f"cartpole_seed{args.seed}")
        callbacks.append(
            keras.callbacks.CSVLogger(f"{name}.csv", append=args.resume)
        )
    dataset = kd.replay.ReplayDataset(replay)
    if args.logdir:
        callbacks.append(kd.callbacks.Checkpoint(args.logdir, "2 minutes"))
    if args.resume:
        found = kd.resume(args.logdir, model, dataset, callbacks)
        print(f"Going on after {found.updates} updates: {found.path}")
    print(f"Training on {keras.backend.backend()}; compiling takes a moment.")
    model.fit(
        dataset,
        epochs=10_000,
        steps_per_epoch=100,
        callbacks=callbacks,
        verbose=0,
    )
    if watch.solved_at is None:
        watch.score("At the end of the budget")
    if args.results:
        model.save(f"{name}.keras")


if __name__ == "__main__":
    main()
