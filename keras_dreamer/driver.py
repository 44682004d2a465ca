"""Steps the environments with the current policy and feeds the replay."""

import collections
import dataclasses
from typing import TYPE_CHECKING
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv

from keras_dreamer import spaces
from keras_dreamer.envs.transitions import Transitions
from keras_dreamer.episode import Episode
from keras_dreamer.models.acting import keep_inactive
from keras_dreamer.models.acting import next_state

if TYPE_CHECKING:
    from keras_dreamer.models.dreamer import Dreamer
    from keras_dreamer.replay.replay import Replay


class Driver:
    """Collects transitions, one environment after the other.

    One cycle (Algorithm K): all environments step, the policy acts on their
    observations, then the transitions enter the replay one by one, so that
    updates can run between them.

    Args:
        envs: what `keras_dreamer.envs.make` returns, or any gymnasium vector
            environment.
        model: `Dreamer`.
        replay: `Replay`.

    Attributes:
        step: int. Transitions so far, over all environments.
        env_steps: int. Simulator steps so far: an action that is repeated
            counts every time, a reset does not count.
        cut_episodes: int. Episodes that broke off so far, as the environment
            failed and was replaced.
        episodes: deque of finished `Episode`s, for callbacks to take.
    """

    def __init__(
        self, envs: VectorEnv, model: "Dreamer", replay: "Replay"
    ) -> None:
        check_spaces(envs, model)
        self.envs = envs
        self.model = model
        self.replay = replay
        self.step = 0
        self.env_steps = 0
        self.cut_episodes = 0
        self.episodes = collections.deque()
        self._transitions = Transitions(envs)
        self._observations = spaces.Converter(
            envs.single_observation_space, "observation"
        )
        self._actions = spaces.Converter(envs.single_action_space, "action")
        self._returns = np.zeros(envs.num_envs)
        self._lengths = np.zeros(envs.num_envs, "int64")
        self._state = None
        self._waiting = collections.deque()  # Rows the policy has not seen.
        self._steps = None  # Transitions of one cycle.
        self._streams = np.zeros(0, "int64")
        self._stored = 0  # How many of them are in the replay.
        self._seeds = None  # Of the first reset.

    def get_state(self) -> dict[str, Any]:
        """Returns the counters and untaken episodes, a dict for JSON."""
        return {
            "step": self.step,
            "env_steps": self.env_steps,
            "cut_episodes": self.cut_episodes,
            "episodes": [dataclasses.asdict(e) for e in self.episodes],
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Goes on from counters, in new episodes.

        The reset rows say by `is_first` that the rows before them, of the
        episodes that were abandoned, are the last ones.

        Args:
            state: dict that `get_state` returned.
        """
        self.step = state["step"]
        self.env_steps = state["env_steps"]
        # The first checkpoints of 0.1.0.dev0 do not have it.
        self.cut_episodes = state.get("cut_episodes", 0)
        self.episodes = collections.deque(
            Episode(**episode) for episode in state["episodes"]
        )
        self._forget(slice(None))
        self._state = None
        self._waiting.clear()
        self._streams, self._stored = self._streams[:0], 0
        # Not the seeds of the run's first episodes once more.
        sequence = np.random.SeedSequence([self.model.seed, self.step])
        state = sequence.generate_state(self.envs.num_envs)
        self._seeds = [int(seed) for seed in state]

    def advance(self, limit: int = 1) -> int:
        """Adds the next transitions to the replay.

        Args:
            limit: int. At most so many; never more than what is left of the
                environments' current step.

        Returns:
            int, the number of transitions added.
        """
        if self._stored == len(self._streams):
            self._collect()
        rows = slice(self._stored, self._stored + limit)
        streams = self._streams[rows]
        steps = _take(self._steps, rows)
        self.replay.add_batch(steps, streams)
        for row in zip(
            streams,
            steps["reward"],
            steps["is_first"],
            steps["is_last"],
            self._costs[rows],
            strict=True,
        ):
            self._count(*row)
        self._stored += len(streams)
        return len(streams)

    def _count(self, stream, reward, first, ended, cost):
        if first:
            # Nothing is counted of an episode that has come to its end.
            self.cut_episodes += int(self._lengths[stream] > 0)
            self._forget(stream)
        self.step += 1
        self.env_steps += int(cost)
        self._returns[stream] += reward
        self._lengths[stream] += 1
        if not ended:
            return
        # The row of the reset is no step of the episode.
        self.episodes.append(
            Episode(
                int(stream),
                float(self._returns[stream]),
                int(self._lengths[stream]) - 1,
                self.step,
                self.env_steps,
            )
        )
        self._forget(stream)

    def _forget(self, streams):
        self._returns[streams] = 0.0
        self._lengths[streams] = 0

    def _collect(self):
        """Acts on the next rows and queues their transitions."""
        if self._state is None and not self._waiting:
            self._waiting.extend(self._transitions.reset(self._seeds))
        elif not self._waiting:
            action = self._actions.from_model(self._state["action"])
            self._waiting.extend(self._transitions.step(action))
        rows = self._waiting.popleft()
        observation = self._observations.to_model(rows.observation)
        active = np.flatnonzero(rows.active)
        self._check_finite(observation, rows.reward, active)
        state = next_state(self.model, observation, self._state, rows.is_first)
        self._check_policy(state, active)
        self._state = keep_inactive(self._state, state, rows.active)
        steps = {
            "observation": observation,
            "action": _zero_where(state["action"], rows.is_last),
            "reward": rows.reward,
            "is_first": rows.is_first,
            "is_last": rows.is_last,
            "is_terminal": rows.is_terminal,
            "context": {"deter": state["deter"], "stoch": state["stoch"]},
        }
        self._steps = _take(steps, active)
        self._costs = rows.env_steps[active]
        self._streams, self._stored = active, 0

    def _check_finite(self, observation, reward, active):
        """Stops before a bad value of an environment enters the replay."""
        checked = {f"observation/{k}": v for k, v in observation.items()}
        for name, value in {**checked, "reward": reward}.items():
            if value.dtype.kind != "f":
                continue
            # -inf marks an observation that is not available (item 1.7).
            bad = ~np.isfinite(value)
            if name in checked:
                bad &= ~np.isneginf(value)
            env = _first(bad, active)
            if env is not None:
                raise ValueError(
                    "The environment must return finite numbers. Received: "
                    f"{name}={value[env]} from {self._place(env)}. Fix the "
                    "environment; an observation that is not available may be "
                    "-inf. The replay does not hold this step."
                )

    def _check_policy(self, state, active):
        """Stops before a bad value of the model enters the replay."""
        values = {f"action/{k}": v for k, v in state["action"].items()}
        # Where actions are classes, only the latents can show it.
        for name, value in {**values, "deter": state["deter"]}.items():
            env = _first(~np.isfinite(value), active)
            if env is not None:
                raise ValueError(
                    "The policy must return finite numbers. Received: "
                    f"{name}={value[env]} for {self._place(env)}. Look for "
                    "huge numbers in the observations, or load weights from "
                    "before training diverged. The replay does not hold this "
                    "step."
                )

    def _place(self, env):
        return (
            f"env {env} at step {self._lengths[env]} of its episode (agent "
            f"step {self.step})"
        )


def _first(bad, active):
    """Returns the first active environment with a bad value, or `None`."""
    bad = bad.reshape(len(bad), -1).any(axis=1)
    return next((int(env) for env in active if bad[env]), None)


def _take(steps, rows):
    """Returns some rows of a nest of dicts, faster than `keras.tree`.

    It runs between all updates.
    """
    return {
        key: _take(value, rows) if isinstance(value, dict) else value[rows]
        for key, value in steps.items()
    }


def _zero_where(action, is_last):
    """Zeroes the actions after the last step, as the reference does."""
    action = {key: value.copy() for key, value in action.items()}
    for value in action.values():
        value[is_last] = 0
    return action


def check_spaces(envs, model):
    """Refuses environments whose spaces are not the model's."""
    pairs = {
        "observation": (
            envs.single_observation_space,
            model.observation_space,
        ),
        "action": (envs.single_action_space, model.action_space),
    }
    for name, (given, expected) in pairs.items():
        given, expected = (spaces.leaves(s, name) for s in (given, expected))
        differ = sorted(
            key
            for key in given.keys() | expected.keys()
            if given.get(key) != expected.get(key)
        )
        if differ:
            raise ValueError(
                f"The environments' {name} space must be the model's. They "
                f"differ in {differ}. Received: "
                f"{[given.get(key) for key in differ]}, required: "
                f"{[expected.get(key) for key in differ]}. Build the model "
                "from the environments' `single_observation_space` and "
                "`single_action_space`."
            )
