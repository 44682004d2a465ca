"""A run with environments in processes, to be ended in some way.

    python orphans.py <fault>

Prints "fitting" when `fit` collects, and "returned" when it is over. The fault
is that of the environments which the run steps; another one hangs.
"""

import sys

import keras
from faulty import faulty
from scripted import Puppet

import keras_dreamer as kd

CONFIG = kd.Config(
    size="small", deter=2, blocks=2, stoch=1, classes=7, batch_length=4
)


class Announce(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        print("fitting", flush=True)


def main(fault):
    hung, _, envs = (
        kd.envs.make(faulty(fault), number, mode="process")
        for number, fault in ((1, "hang"), (2, "none"), (16, fault))
    )
    hung.reset()
    hung.unwrapped.workers[0].send("step", action=1)
    model = kd.Dreamer(
        envs.single_observation_space, envs.single_action_space, CONFIG
    )
    model.compile()
    replay = kd.replay.Replay(CONFIG, envs, dtype="float32")
    # The policy needs no compilation, and the first update never comes.
    driver = kd.Driver(envs, Puppet(envs), replay)
    dataset = kd.replay.ReplayDataset(replay, batch_size=10**6)
    callbacks = [Announce(), kd.callbacks.TrainRatio(driver, 1)]
    model.fit(dataset, steps_per_epoch=1, callbacks=callbacks, verbose=0)
    print("returned", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
