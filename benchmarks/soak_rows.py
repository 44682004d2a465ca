"""The environment of `soak`, and what a replay of it must hold.

Reads the files of a checkpoint with NumPy alone, so that an error in the
package's own reading does not hide one in its writing.
"""

import json

import gymnasium
import numpy as np

LIMIT = 60  # Steps of an episode, so that some end by time.
_BITS = 40  # A step id is `stream << 40 | position`.
FLAGS = ("is_first", "is_last", "is_terminal")
_FIELDS = ("observation/observation", "action/action", "reward", *FLAGS)


class Counted(gymnasium.Wrapper):
    """CartPole whose observation ends with the number of the step."""

    def __init__(self):
        env = gymnasium.make("CartPole-v1", max_episode_steps=LIMIT)
        super().__init__(env)
        space = env.observation_space
        self.observation_space = gymnasium.spaces.Box(
            np.append(space.low, 0).astype("float32"),
            np.append(space.high, LIMIT).astype("float32"),
        )

    def reset(self, *, seed=None, options=None):
        observation, info = self.env.reset(seed=seed, options=options)
        self._steps = 0
        return self._counted(observation), info

    def step(self, action):
        observation, *result = self.env.step(action)
        self._steps += 1
        return self._counted(observation), *result

    def _counted(self, observation):
        return np.append(observation, self._steps).astype("float32")


class Violation(Exception):
    """Something is not as it must be."""


def require(truth, message):
    """Raises `Violation` if something is not true of all entries."""
    if not np.all(truth):
        raise Violation(message)


def read_index(path):
    """Returns the index of a saved replay, a dict of arrays and `meta`."""
    with np.load(path / "replay.npz") as file:
        index = {name: file[name] for name in file.files}
    index["meta"] = json.loads(str(index["meta"]))
    return index


def read_rows(path):
    """Returns the rows of a saved replay.

    Args:
        path: `pathlib.Path` of the checkpoint.

    Returns:
        List of one dict per stream: `position`, ascending, and the fields.
    """
    index = read_index(path)
    length = index["meta"]["length"]
    page = 1 << (length - 1).bit_length()
    first = index["evicted"] // page * page
    parts = [_read(path / name) for name in index["meta"]["files"]]
    # The later file has the newer version of a row: it comes first here.
    merged = {
        name: np.concatenate([part[name] for part in reversed(parts)])
        for name in parts[0]
    }
    step_id, newest = np.unique(merged["step_id"], return_index=True)
    streams, positions = step_id >> _BITS, step_id & ((1 << _BITS) - 1)
    found = []
    for stream, count in enumerate(index["rows"]):
        mine = (streams == stream) & (positions >= first[stream])
        require(
            positions[mine].tolist() == list(range(first[stream], count)),
            f"stream {stream} lacks rows from {first[stream]} to {count}",
        )
        rows = {name: merged[name][newest[mine]] for name in _FIELDS}
        found.append({"position": positions[mine], **rows})
    return found


def _read(path):
    with np.load(path) as file:
        latents = file["row/context/deter"]
        require(np.isfinite(latents), f"{path.name} has bad latents")
        fields = {name: file[f"row/{name}"] for name in _FIELDS}
        return {"step_id": file["step_id"], **fields}


def check_rows(rows, cuts):
    """Checks the rows of one stream.

    Args:
        rows: dict of `read_rows`.
        cuts: set of positions at which a resumed run began new episodes.
    """
    position, step = rows["position"], rows["observation/observation"][:, -1]
    first, last, terminal = (rows[name] for name in FLAGS)
    require(first == (step == 0), "`is_first` is not where episodes begin")
    require(rows["reward"] == ~first, "rewards are not 1 after each step")
    require(last | ~terminal, "a terminal row is not the last one")
    require(last | (step < LIMIT), "an episode is longer than its limit")
    require(terminal | ~last | (step == LIMIT), "an episode ends too early")
    require(np.isin(rows["action/action"], (0, 1)), "an action is unknown")
    require(rows["action/action"][last] == 0, "an action follows the end")
    follows = ~first[1:]
    require(first[1:] | ~last[:-1], "no reset follows the end of an episode")
    require(
        step[1:][follows] == step[:-1][follows] + 1, "steps are not in order"
    )
    cut = position[1:][first[1:] & ~last[:-1]]
    wrong = sorted(set(cut.tolist()) - cuts)
    require(not wrong, f"episodes are cut at {wrong}, where no run began")
    require(first[np.isin(position, list(cuts))], "a resumed run did not reset")


def check_unchanged(before, after):
    """Checks that rows of one stream which both hold are the same."""
    start, stop = after["position"][0], before["position"][-1] + 1
    old = before["position"] >= start
    new = after["position"] < stop
    for name in _FIELDS:
        same = before[name][old] == after[name][new]
        require(same, f"`{name}` of old rows has changed")


def check_windows(batch, streams):
    """Checks sampled windows against the rows of `read_rows`."""
    first, last, terminal = (batch[name] for name in FLAGS)
    require(first[:, 0], "a window does not begin with a reset")
    require(last[:, :-1] | ~first[:, 1:], "a window is not cut at a reset")
    for window, step_id in enumerate(batch["step_id"]):
        rows = streams[step_id[0] >> _BITS]
        position = step_id & ((1 << _BITS) - 1)
        at = position - rows["position"][0]
        require(np.diff(position) == 1, "a window has gaps")
        name = "observation/observation"
        stored = rows[name][at]
        found = batch["observation"]["observation"][window]
        require(stored == found, "a window holds other observations")
        require(
            rows["is_terminal"][at] == terminal[window],
            "a cut counts as the end of an episode",
        )
