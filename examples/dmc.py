"""Trains on a task of dm_control and records its learning curve.

    python examples/dmc.py
    python examples/dmc.py --task walker_walk --size 12m --env-steps 500000

The size "small" comes with settings that show learning within half an hour on
two cores. Every other size trains by the protocol of the recipe: 16
environments, and its own action repeat, replay ratio and budget.

With `--logdir runs/balance` the run is logged there, every episode included,
and saved every ten minutes; the same command with `--resume` goes on with it.
"""

import argparse
import os
import pathlib
import time

os.environ.setdefault("KERAS_BACKEND", "jax")

import keras  # noqa: E402

import keras_dreamer as kd  # noqa: E402

# A budget of tens of thousands of steps ends before the recipe's learning
# rate has done much: 25 times the rate, a short warm-up, shorter batches.
QUICK = {
    "lr": 1e-3,
    "warmup": 200,
    "batch_length": 16,
    "train_ratio": 128.0,
    "env_steps": 30_000,
}


class Curve(keras.callbacks.Callback):
    """Prints one line an epoch."""

    def on_train_begin(self, logs=None):
        self.started = time.time()

    def on_epoch_end(self, epoch, logs=None):
        print(
            f"{time.time() - self.started:5.0f} s  "
            f"{logs['env_steps']:7d} env steps  "
            f"{logs['updates']:6d} updates  "
            f"return {logs['episode/return']:6.1f}  "
            f"loss {logs['loss']:6.2f}  {logs['updates/s']:5.1f} updates/s",
            flush=True,
        )


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", default="cartpole_balance")
    parser.add_argument("--size", default="small", choices=kd.config.SIZES)
    parser.add_argument("--recipe", default="paper", choices=["paper", "head"])
    parser.add_argument("--env-steps", type=int, help="simulator steps")
    parser.add_argument("--ratio", type=float, help="replay ratio")
    parser.add_argument("--envs", type=int, help="number of environments")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", default="", help="folder for CSV, model")
    parser.add_argument("--logdir", default="", help="folder for checkpoints")
    parser.add_argument(
        "--resume", action="store_true", help="go on with the run in --logdir"
    )
    args = parser.parse_args()
    if args.resume and not args.logdir:
        parser.error("--resume needs --logdir, the folder of the run")
    return args


def configure(args):
    """Returns the configuration and the number of environments."""
    quick = args.size == "small"
    config = kd.Config(args.size, args.recipe, **(QUICK if quick else {}))
    given = {"env_steps": args.env_steps, "train_ratio": args.ratio}
    given = {name: value for name, value in given.items() if value}
    return config.replace(**given), args.envs or (4 if quick else 16)


def main():
    args = parse()
    config, num_envs = configure(args)
    kd.configure_runtime()
    envs = kd.envs.make(
        f"dmc:{args.task}",
        num_envs=num_envs,
        action_repeat=config.action_repeat,
        seed=args.seed,
    )
    model = kd.Dreamer(
        envs.single_observation_space,
        envs.single_action_space,
        config,
        seed=args.seed,
    )
    model.compile()
    replay = kd.replay.Replay(config, envs, seed=args.seed)
    total_steps = config.env_steps // config.action_repeat
    driver = kd.Driver(envs, model, replay)
    callbacks = [
        kd.callbacks.TrainRatio(driver, config.train_ratio, total_steps),
        Curve(),
    ]
    print(
        f"{args.task} on {keras.backend.backend()}: {model.count_params():,} "
        f"parameters, {total_steps} agent steps, replay of "
        f"{replay.predicted_nbytes(total_steps) / 1e6:.0f} MB at the end"
    )
    if args.results:
        folder = pathlib.Path(args.results)
        folder.mkdir(parents=True, exist_ok=True)
        name = str(folder / f"dmc_{args.task}_{args.size}_seed{args.seed}")
        callbacks.append(
            keras.callbacks.CSVLogger(f"{name}.csv", append=args.resume)
        )
    dataset = kd.replay.ReplayDataset(replay)
    if args.logdir:
        callbacks += [
            kd.callbacks.Checkpoint(args.logdir),
            kd.callbacks.RunLog(args.logdir),
        ]
    if args.resume:
        found = kd.resume(args.logdir, model, dataset, callbacks)
        print(f"Going on after {found.updates} updates: {found.path}")
    model.fit(
        dataset,
        epochs=100_000,
        steps_per_epoch=100,
        callbacks=callbacks,
        verbose=0,
    )
    if args.results:
        model.save(f"{name}.keras")


if __name__ == "__main__":
    main()
