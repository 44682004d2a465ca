"""`act`: how long choosing actions takes."""

import numpy as np

from benchmarks.common import OBSERVATION
from benchmarks.common import describe
from benchmarks.common import make_agent
from benchmarks.common import median
from benchmarks.common import timed
from keras_dreamer.models.acting import initial_state
from keras_dreamer.models.noise import acting_noise

COLUMNS = {
    "backend": "",
    "size": "",
    "dtype": "",
    "envs": "",
    "act_ms": "act, ms",
    "policy_ms": "bare policy, ms",
    "ratio": "",
}
_WARM_UP = 5


def measure(case):
    """Measures `Dreamer.act` and the compiled policy that it calls, in turns.

    Args:
        case: dict with `backend`, `size`, `dtype`, `config`, `envs` (list of
            numbers of environments) and `calls`.

    Returns:
        List of dicts, one for each number of environments.
    """
    model = make_agent(case)
    return [
        {**describe(model), **time_acting(model, envs, case["calls"])}
        for envs in case["envs"]
    ]


def time_acting(model, envs, calls):
    """Times actions of a number of environments."""
    rng = np.random.default_rng(0)
    shape = (envs, *OBSERVATION.shape)
    observation = rng.standard_normal(shape).astype("float32")
    # What the policy takes, ready: no copies, no noise to draw.
    arguments = (
        {"observation": observation},
        initial_state(model, envs),
        np.zeros(envs, bool),
        acting_noise(model.config, model.action_leaves, envs, rng, False),
    )
    acting, bare, state = [], [], None
    for _ in range(calls + _WARM_UP):
        bare.append(timed(lambda: model.policy(*arguments))[0])
        taken, (_, state) = timed(
            lambda state=state: model.act(observation, state)
        )
        acting.append(taken)
    act_ms, policy_ms = median(acting[_WARM_UP:]), median(bare[_WARM_UP:])
    return {
        "envs": envs,
        "act_ms": act_ms,
        "policy_ms": policy_ms,
        "ratio": act_ms / policy_ms,
    }
