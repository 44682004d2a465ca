"""Small replays whose rows carry their own number."""

import dataclasses
import types

import gymnasium
import numpy as np
import pytest

from keras_dreamer.replay import Replay

BOX = gymnasium.spaces.Box(-np.inf, np.inf, (2,))


@dataclasses.dataclass(frozen=True)
class SmallConfig:
    """The fields of `Config` that the replay reads."""

    batch_length: int = 4
    replay_context: int = 1
    batch_size: int = 2
    deter: int = 2
    stoch: int = 3
    classes: int = 5


def make_envs(num_envs, observation=BOX, action=BOX):
    """Returns what the replay needs to know about environments."""
    return types.SimpleNamespace(
        num_envs=num_envs,
        single_observation_space=observation,
        single_action_space=action,
    )


def make_replay(num_envs=2, capacity=1000, dtype="float32", **kwargs):
    """Returns a replay; fields of `SmallConfig` may be given."""
    names = ("online", "seed", "directory")
    own = {k: kwargs.pop(k) for k in names if k in kwargs}
    return Replay(
        SmallConfig(**kwargs), make_envs(num_envs), capacity, dtype=dtype, **own
    )


def make_steps(number, is_first=False, is_last=False, context=True):
    """Returns steps in which every entry tells the row's number.

    Args:
        number: int or `(N,)` int array.
        is_first: bool or `(N,)` bool array.
        is_last: bool or `(N,)` bool array.
        context: bool. Whether to give latents.
    """
    number = np.asarray(number)
    steps = {
        "observation": {"observation": _repeat(number, 2)},
        "action": {"action": _repeat(-number, 2)},
        "reward": number / 2,
        "is_first": np.broadcast_to(is_first, number.shape),
        "is_last": np.broadcast_to(is_last, number.shape),
        "is_terminal": number % 3 == 0,
    }
    if context:
        steps["context"] = make_latents(number)
    return steps


def make_latents(number):
    """Returns the latents that `make_steps` gives to rows of a number."""
    number = np.asarray(number)
    return {"deter": _repeat(number, 2), "stoch": _repeat(number % 5, 3)}


def _repeat(number, size):
    return np.repeat(number[..., None], size, axis=-1)


def fill(replay, steps, **flags):
    """Adds rows 0 .. steps - 1, numbered `stream * 1000 + t`, in turn."""
    streams = np.arange(replay.num_streams)
    for t in range(steps):
        given = {name: flag(t) for name, flag in flags.items()}
        replay.add_batch(make_steps(streams * 1000 + t, **given), streams)


def numbers(batch):
    """Returns the row numbers of a batch, after checking that all agree."""
    number = batch["observation"]["observation"][..., 0]
    expected = make_steps(number)
    for group in ("observation", "action"):
        np.testing.assert_array_equal(
            batch[group][group], expected[group][group]
        )
    for name in ("reward", "is_terminal"):
        np.testing.assert_array_equal(batch[name], expected[name])
    assert number.dtype == np.float32
    return number.astype(int)


@pytest.fixture(scope="session")
def small():
    """The helpers of this file, for tests that cannot import it."""
    return types.SimpleNamespace(
        Config=SmallConfig,
        box=BOX,
        envs=make_envs,
        fill=fill,
        latents=make_latents,
        numbers=numbers,
        replay=make_replay,
        steps=make_steps,
    )
