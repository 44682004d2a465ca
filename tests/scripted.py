"""Environments whose every value is known, and the loop in plain Python."""

import itertools
import types

import gymnasium
import keras
import numpy as np

import keras_dreamer as kd
from keras_dreamer.models.noise import NumberedNoise
from keras_dreamer.spaces import Converter
from keras_dreamer.spaces import leaves

LENGTHS = (1, 2, 5, 3, 1, 4)
CONTINUOUS = gymnasium.spaces.Box(-2, 2, (1,))


class Scripted(gymnasium.Env):
    """Every episode has the next length of a script.

    Observations are `[number, episode, step]`, the reward of a step is
    `episode + step / 8`. Episodes of even number terminate, the others are
    truncated. `received` holds the actions of all steps.
    """

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (3,))

    def __init__(self, number=0, lengths=LENGTHS, action_space=CONTINUOUS):
        self.number = number
        self.lengths = lengths_of(number, lengths)
        self.action_space = action_space
        self.episode = -1
        self.received = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode += 1
        self.count = 0
        return self._observation(), {}

    def step(self, action):
        self.received.append(np.array(action))
        self.count += 1
        ended = self.count == self.lengths[self.episode % len(self.lengths)]
        even = self.episode % 2 == 0
        reward = self.episode + self.count / 8
        return (
            self._observation(),
            reward,
            ended and even,
            ended and not even,
            {},
        )

    def _observation(self):
        values = [self.number, self.episode, self.count]
        return np.array(values, "float32")


class Puppet:
    """Stands in for `Dreamer`: its policy is known.

    `deter` is `[steps since the reset, the last observation]`, `stoch` is
    `[steps modulo 7]`, and the action repeats `deter`, modulo its classes.
    """

    seed = 0
    compute_dtype = "float32"

    def __init__(self, envs):
        self.observation_space = envs.single_observation_space
        self.action_space = envs.single_action_space
        self.action_leaves = leaves(self.action_space, "action")
        self.observations = Converter(self.observation_space, "observation")
        self.actions = Converter(self.action_space, "action")
        self.config = types.SimpleNamespace(deter=2, stoch=1)
        self.action_noise = NumberedNoise(self.seed)

    def policy(self, observation, state, is_first, noise):
        steps = np.where(is_first, 0, state["deter"][:, 0] + 1)
        last = next(iter(observation.values()))
        last = last.reshape(len(last), -1)[:, -1]
        action = {}
        for key, leaf in self.action_leaves.items():
            shape = (-1, *(1,) * len(leaf.shape))
            value = np.broadcast_to(
                (steps + 1).reshape(shape), (len(steps), *leaf.shape)
            )
            value = value % leaf.classes if leaf.discrete else value / 4
            action[key] = value.astype(leaf.dtype)
        state = {
            "deter": np.stack([steps, last], 1).astype("float32"),
            "stoch": (steps % 7)[:, None].astype("int32"),
            "action": action,
        }
        return keras.tree.map_structure(keras.ops.convert_to_tensor, state)


def make_scripted(num_envs, action_repeat=1, seed=0, env=Scripted, **kwargs):
    """Returns `Environments` of scripted ones, numbered from 0."""
    numbers = itertools.count()
    return kd.envs.make(
        lambda: env(next(numbers), **kwargs),
        num_envs=num_envs,
        action_repeat=action_repeat,
        seed=seed,
    )


def scripted_envs(envs):
    """Returns the innermost environments of a synchronous vector."""
    return [env.unwrapped for env in envs.unwrapped.envs]


def lengths_of(number, lengths=LENGTHS):
    """Returns the script of an environment: it starts at another place."""
    start = number % len(lengths)
    return lengths[start:] + lengths[:start]


def expected_rows(number, count, lengths=LENGTHS):
    """Returns the first rows that a replay must hold of an environment."""
    rows = []
    episodes = enumerate(itertools.cycle(lengths_of(number, lengths)))
    while len(rows) < count:
        episode, length = next(episodes)
        for step in range(length + 1):
            ended = step == length
            rows.append(
                {
                    "observation": [number, episode, step],
                    "reward": episode + step / 8 if step else 0.0,
                    "is_first": step == 0,
                    "is_last": ended,
                    "is_terminal": ended and episode % 2 == 0,
                }
            )
    return rows[:count]


def algorithm_k(num_envs, total, trained, length, ratio):
    """Returns what must happen, in order: Algorithm K with its clock.

    Args:
        num_envs: int.
        total: int. Transitions until training ends.
        trained: int. Steps that an update trains on, B * T.
        length: int. Rows of a window.
        ratio: float. The train ratio.

    Returns:
        List of the streams' numbers, for added rows, and "update".
    """
    ratio = ratio / trained
    events, step, previous = [], 0, None
    rows = [0] * num_envs
    while True:
        for stream in range(num_envs):
            step += 1
            rows[stream] += 1
            events.append(stream)
            if sum(max(0, n - length + 1) for n in rows) >= trained:
                due = 1
                if previous is None:
                    previous = step
                else:
                    due = int((step - previous) * ratio)
                    previous += due / ratio
                events += ["update"] * due
            if step == total:
                return events


def tiny_config(**overrides):
    """Returns a configuration that compiles and trains fast."""
    fields = dict(
        deter=16,
        hidden=8,
        units=8,
        stoch=2,
        classes=4,
        blocks=2,
        bins=15,
        imglayers=1,
        encoder_layers=1,
        decoder_layers=1,
        policy_layers=1,
        value_layers=1,
        imag_length=2,
        batch_size=3,
        batch_length=4,
    )
    return kd.Config(size="small", **{**fields, **overrides})
