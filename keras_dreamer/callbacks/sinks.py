"""Where `RunLog` writes to. Every sink may fail; `RunLog` sees to that."""

import json
import math

from keras_dreamer.optional import optional


class JsonLines:
    """Appends one JSON object a line to a file.

    Lines reach the operating system at once, so that a run can be watched and
    a killed run keeps them. What JSON cannot hold (NaN, infinity) is `null`.

    Args:
        logdir: `pathlib.Path` of the run. The file is `log.jsonl`.
        start: dict, the first line of this run.
    """

    def __init__(self, logdir, start):
        logdir.mkdir(parents=True, exist_ok=True)
        self.path = logdir / "log.jsonl"
        self._append(start)

    def write(self, event, step):
        """Writes an event, a dict of scalars."""
        self._append(event)

    def close(self):
        """Does nothing: the file is open only while a line is written."""

    def _append(self, event):
        line = {name: _for_json(value) for name, value in event.items()}
        text = json.dumps(line, allow_nan=False) + "\n"
        with self.path.open("a", encoding="utf-8") as file:
            file.write(text)


class TensorBoard:
    """Writes scalars for TensorBoard, with tensorboardX.

    Args:
        logdir: `pathlib.Path` of the run.
        start: dict, shown as text.
    """

    def __init__(self, logdir, start):
        module = optional("tensorboardX", "log")
        self.writer = module.SummaryWriter(str(logdir))
        text = json.dumps(start, indent=4, default=str)
        self.writer.add_text("start", f"```\n{text}\n```", 0)

    def write(self, event, step):
        """Writes the numbers of an event at a step."""
        for name, value in scalars(event).items():
            self.writer.add_scalar(name, value, step)
        self.writer.flush()

    def close(self):
        """Writes what is left."""
        self.writer.close()


class WandB:
    """Sends scalars to Weights & Biases, as its own settings say.

    Args:
        logdir: `pathlib.Path` of the run. Its last part names the run.
        start: dict, the configuration of the run.
    """

    def __init__(self, logdir, start):
        module = optional("wandb", "wandb")
        self.run = module.init(name=logdir.name, dir=str(logdir), config=start)

    def write(self, event, step):
        """Sends the numbers of an event at a step."""
        self.run.log(scalars(event), step=step)

    def close(self):
        """Ends the run."""
        self.run.finish()


def scalars(event):
    """Returns the numbers that a chart can show, under the charts' names.

    Those of an epoch keep their names. Those of a single episode go under
    `train_episode/`, beside the epoch's means in `episode/`.
    """
    event = dict(event)
    kind = event.pop("event")
    event.pop("time")
    prefix = "train_episode/" if kind == "episode" else ""
    return {
        prefix + name: float(value)
        for name, value in event.items()
        if isinstance(value, int | float) and math.isfinite(value)
    }


def _for_json(value):
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
