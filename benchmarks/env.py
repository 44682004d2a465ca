"""`env`: how many steps environments make."""

import importlib.util
import time

import numpy as np

import keras_dreamer as kd
from keras_dreamer.envs import Transitions

COLUMNS = {
    "env": "",
    "mode": "",
    "envs": "",
    "steps_per_s": "agent steps/s",
    "start_s": "start, s",
}


def measure(case):
    """Measures environments with random actions, without an agent.

    Args:
        case: dict with `env` (as `envs.make` takes it), `mode`, `envs` (a
            number) and `steps` (of each environment).

    Returns:
        List of one dict.
    """
    kind = case["env"].partition(":")[0]
    if kind == "dmc" and importlib.util.find_spec("dm_control") is None:
        return [{"steps_per_s": None, "note": "dm_control is not installed"}]
    start = time.perf_counter()
    envs = kd.envs.make(case["env"], case["envs"], mode=case["mode"])
    envs.action_space.seed(0)
    transitions = Transitions(envs)
    transitions.reset()
    actions = [envs.action_space.sample() for _ in range(64)]
    transitions.step(actions[0])
    begin = time.perf_counter()
    for step in range(case["steps"]):
        transitions.step(actions[step % len(actions)])
    seconds = time.perf_counter() - begin
    envs.close()
    total = case["steps"] * case["envs"]
    return [
        {
            "steps_per_s": total / seconds,
            "start_s": begin - start,
            "observations": int(
                np.prod(envs.single_observation_space.shape or (0,))
            ),
        }
    ]
