"""The run that `soak` kills: `python -m benchmarks.soak_run FOLDER`.

The folder holds `task.json`, and gets what a run leaves and `witness.jsonl`.
"""

import json
import pathlib
import sys

import keras

import keras_dreamer as kd
from benchmarks.soak_rows import Counted

EVERY = 10  # Updates of a line in `witness.jsonl`.


class Witness(keras.callbacks.Callback):
    """Writes down what the run counts, for `soak` to compare.

    A line has the counters, `lag` (updates ahead of those that the train ratio
    gives for the agent steps), and `burst` (the most updates so far between
    two agent steps).

    Args:
        path: path of the file.
        ratio: `TrainRatio`.
        rate: float. Updates per agent step.
    """

    def __init__(self, path, ratio, rate):
        super().__init__()
        self.path = path
        self.ratio = ratio
        self.rate = rate
        self._step = None
        self._same = self._burst = 0

    def on_train_begin(self, logs=None):
        self._write("begin")

    def on_train_batch_end(self, batch, logs=None):
        step = self.ratio.driver.step
        self._same = self._same + 1 if step == self._step else 1
        self._step = step
        self._burst = max(self._burst, self._same)
        if self.ratio.updates % EVERY == 1:
            self._write("update")

    def _write(self, event):
        state = self.ratio.get_state()
        line = {
            "event": event,
            "updates": state["updates"],
            "step": state["driver"]["step"],
            "env_steps": state["driver"]["env_steps"],
            "lag": lag(state, self.rate),
            "burst": self._burst,
        }
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")


def lag(state, rate):
    """Returns how many updates a run is ahead of its train ratio.

    Args:
        state: dict, that of `TrainRatio`.
        rate: float. Updates per agent step.
    """
    if not state["first_step"]:
        return 0.0
    steps = state["driver"]["step"] - state["first_step"]
    return state["updates"] + state["due"] - (1 + steps * rate)


def main(folder):
    if keras.backend.backend() != "tensorflow":
        # Where it is installed, Keras imports it to save a model: seconds and
        # a gigabyte that are not the run's.
        sys.modules.setdefault("tensorflow", None)
    folder = pathlib.Path(folder)
    task = json.loads((folder / "task.json").read_text())
    kd.configure_runtime(folder / "cache")
    config = kd.Config(**task["config"])
    envs = kd.envs.make(
        Counted, task["envs"], seed=task["seed"], mode="process"
    )
    model = kd.Dreamer(
        envs.single_observation_space,
        envs.single_action_space,
        config,
        seed=task["seed"],
    )
    model.compile()
    replay = kd.replay.Replay(
        config,
        envs,
        capacity=task["capacity"],
        seed=task["seed"],
        directory=folder / "rows" if task["mapped"] else None,
    )
    driver = kd.Driver(envs, model, replay)
    ratio = kd.callbacks.TrainRatio(driver, config.train_ratio)
    callbacks = [
        ratio,
        kd.callbacks.RunLog(folder),
        kd.callbacks.Checkpoint(folder, every=task["every"]),
        Witness(folder / "witness.jsonl", ratio, task["rate"]),
    ]
    dataset = kd.replay.ReplayDataset(replay)
    if task["resume"]:
        kd.resume(folder, model, dataset, callbacks)
    model.fit(
        dataset,
        epochs=10**9,  # Until it is killed.
        steps_per_epoch=100,
        callbacks=callbacks,
        verbose=0,
    )
    envs.close()


if __name__ == "__main__":
    main(sys.argv[1])
