"""Kills a process again and again while it writes checkpoints.

    python killed.py <folder> <rounds>

Prints the number of updates of the last checkpoint after every kill.
"""

import os
import pathlib
import random
import signal
import sys
import time
import types

import numpy as np
from stand_in import BOX
from stand_in import StandIn

import keras_dreamer as kd
from keras_dreamer.checkpoints import record
from keras_dreamer.checkpoints.folder import Folder
from keras_dreamer.checkpoints.saving import save
from keras_dreamer.replay import Replay

CONFIG = kd.Config(deter=8, stoch=2, classes=4, batch_length=4)
ENVS = types.SimpleNamespace(
    num_envs=2, single_observation_space=BOX, single_action_space=BOX
)


def make_replay():
    return Replay(CONFIG, ENVS, capacity=150, dtype="float32")


def rows(stream, count, generation):
    """Returns rows whose latents are those of a generation."""
    number = np.arange(count) + 10**6 * stream
    return {
        "observation": {"observation": np.stack([number] * 2, 1)},
        "action": {"action": np.zeros((count, 2))},
        "reward": number,
        "is_first": number % 7 == 0,
        "is_last": number % 7 == 6,
        "is_terminal": number % 7 == 6,
        "context": {
            "deter": np.full((count, 8), generation),
            "stoch": np.full((count, 2), generation % 4),
        },
    }


def write(folder, count):
    """Goes on from the newest checkpoint, one more for each row."""
    folder = Folder(folder)
    model, replay = restore(folder)
    newest = folder.finished()[-1] if folder.finished() else None
    for _ in range(count):
        model.generation += 1
        for stream in range(2):
            steps = rows(stream, model.generation, model.generation)
            last = kd_map(lambda x: x[-1], steps)
            replay.add(last, stream)
        # Every latent that is held becomes that of this generation.
        ids = replay._pool.ids(np.flatnonzero(replay._pool.files >= 0))
        fresh = rows(0, len(ids), model.generation)["context"]
        replay.update(ids[None], kd_map(lambda x: x[None], fresh))
        with folder.new() as path:
            save(path, newest, model, replay, [], updates=model.generation)
        newest = path.with_suffix("")
        folder.keep(2)


def kd_map(function, nest):
    if isinstance(nest, dict):
        return {key: kd_map(function, value) for key, value in nest.items()}
    return function(nest)


def restore(folder):
    """Loads the newest checkpoint and checks every row of it."""
    model, replay = StandIn(), make_replay()
    if not folder.finished():
        return model, replay
    path = folder.finished()[-1]
    updates = record.read(path)["updates"]
    model.load_weights(path / "agent.keras")
    replay.load(path)
    require(model.generation == updates, "the agent is another one")
    pool = replay._pool
    row = np.flatnonzero(pool.files >= 0)
    number = pool.arrays["reward"][row].astype(int)
    ids = pool.ids(row)
    require(
        (replay._items.rows == updates).all()
        and (number % 10**6 == ids & 0xFFFFFFFF).all()
        and (number // 10**6 == ids >> 40).all()
        and (pool.arrays["context/deter"][row] == updates).all()
        and (pool.arrays["context/stoch"][row] == updates % 4).all(),
        "the replay is another one",
    )
    return model, replay


def require(truth, message):
    if not truth:
        raise SystemExit(message)


def main(path, rounds):
    rng = random.Random(0)  # noqa: S311
    start = time.monotonic()
    write(path, 3)
    seconds = min((time.monotonic() - start) / 3, 0.5)  # A disk may be slow.
    for _ in range(rounds):
        child = os.fork()
        if not child:
            write(path, 10**9)
        time.sleep(rng.uniform(0.5, 4) * seconds)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        require(os.WIFSIGNALED(status), "the writer failed")
        model, _ = restore(Folder(path))
        left = len(list(Folder(path).path.glob("*.unfinished")))
        print(model.generation, left, flush=True)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), int(sys.argv[2]))
