"""Holds an environment to the spaces that it declares."""

import gymnasium
import numpy as np
from gymnasium import spaces

from keras_dreamer.spaces import leaves


class Checked(gymnasium.Wrapper):
    """Refuses observations that break the declared space, naming the place.

    Observations come out as arrays in the declared shape and dtype: numbers
    are cast when the dtype can hold them, keys that are not declared are
    dropped. Rewards come out as floats. Whether values are finite or in
    bounds is not checked here.

    Args:
        env: gymnasium environment. Its spaces must be supported by
            `keras_dreamer.spaces.leaves`.
        index: int. Number of the environment in its vector, for errors.
    """

    def __init__(self, env: gymnasium.Env, index: int = 0) -> None:
        super().__init__(env)
        self.index = index
        self._step = 0
        leaves(env.observation_space, "observation")
        leaves(env.action_space, "action")

    def reset(self, *, seed=None, options=None):
        self._step = 0
        result = self.env.reset(seed=seed, options=options)
        self._require_length(result, 2, "`reset`", "(observation, info)")
        observation, info = result
        return self._observation(observation), info

    def step(self, action):
        self._step += 1
        result = self.env.step(action)
        self._require_length(
            result,
            5,
            "`step`",
            "(observation, reward, terminated, truncated, info)",
        )
        observation, reward, terminated, truncated, info = result
        return (
            self._observation(observation),
            self._reward(reward),
            bool(terminated),
            bool(truncated),
            info,
        )

    def _observation(self, observation):
        space = self.env.observation_space
        root = "" if isinstance(space, spaces.Dict) else "observation"
        return self._conform(space, observation, root)

    def _conform(self, space, value, key):
        if isinstance(space, spaces.Dict | spaces.Tuple):
            return self._conform_nest(space, value, key)
        array = np.asarray(value)
        if array.shape == space.shape:
            if array.dtype == space.dtype:
                return array
            cast = _cast(array, space.dtype)
            if cast is not None:
                return cast
        raise ValueError(
            f"The observation {key!r} must have shape {space.shape} and dtype "
            f"{space.dtype}, as its space declares. Received: "
            f"shape={array.shape}, dtype={array.dtype} {self._place()}. "
            "Correct the environment or its `observation_space`."
        )

    def _conform_nest(self, space, value, key):
        is_dict = isinstance(space, spaces.Dict)
        entries = space.spaces.items() if is_dict else enumerate(space.spaces)
        conformed = {}
        for child, subspace in entries:
            path = f"{key}/{child}" if key else child
            try:
                entry = value[child]
            except (KeyError, IndexError, TypeError):
                raise ValueError(
                    f"The observation must have the entry {path!r}, as its "
                    f"space declares. Received: a {type(value).__name__} "
                    f"without it {self._place()}. Correct the environment or "
                    "its `observation_space`."
                ) from None
            conformed[child] = self._conform(subspace, entry, path)
        return conformed if is_dict else tuple(conformed.values())

    def _reward(self, reward):
        array = np.asarray(reward)
        if array.size != 1 or array.dtype.kind not in "biuf":
            raise ValueError(
                "The reward must be one number. Received: "
                f"reward={reward!r} {self._place()}. Correct the environment."
            )
        return float(array.item())

    def _require_length(self, result, length, method, form):
        if not isinstance(result, tuple) or len(result) != length:
            raise ValueError(
                f"{method} must return the {length} values {form}. Received: "
                f"{_describe(result)} {self._place()}. Update the environment "
                "to gymnasium's interface."
            )

    def _place(self):
        return f"in environment {self.index} at step {self._step}"


def _cast(array, dtype):
    """Returns the array in another dtype, None if that would change it."""
    if array.dtype.kind not in "biuf":
        return None
    if dtype.kind == "f":
        return array.astype(dtype)
    if array.dtype.kind == "f":
        return None
    cast = array.astype(dtype)
    return cast if (cast == array).all() else None


def _describe(result):
    if isinstance(result, tuple):
        return f"a tuple of {len(result)} values"
    return f"a {type(result).__name__}"
