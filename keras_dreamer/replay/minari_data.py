"""Experience from and to datasets of Minari.

Minari keeps T + 1 observations and T actions of an episode; a replay has T + 1
rows of it, of which row t holds observation t, the action taken there and the
reward received on arriving there. So row 0 has no reward, and row T no action.
"""

import types

import numpy as np

from keras_dreamer import spaces
from keras_dreamer.optional import optional
from keras_dreamer.replay.replay import Replay
from keras_dreamer.space_inverses import action_to_model
from keras_dreamer.space_inverses import observation_from_model
from keras_dreamer.version import __version__


def from_minari(dataset, config, **kwargs):
    """Returns a replay that holds a Minari dataset.

    Its `observation_space` and `action_space` are those of the model.

    Args:
        dataset: `minari.MinariDataset`, or the id of one on this machine.
        config: `Config`.
        **kwargs: arguments of `Replay` after `envs`.

    Returns:
        `Replay` of one stream.

    Example:

    >>> replay = keras_dreamer.replay.from_minari("D4RL/door/human-v2", config)
    >>> model = keras_dreamer.Dreamer(
    ...     replay.observation_space, replay.action_space, config
    ... )
    >>> model.compile()
    >>> dataset = keras_dreamer.replay.ReplayDataset(replay)
    >>> history = model.fit(dataset, steps_per_epoch=1000)
    """
    dataset = _opened(dataset)
    envs = types.SimpleNamespace(
        num_envs=1,
        single_observation_space=dataset.observation_space,
        single_action_space=dataset.action_space,
    )
    replay = Replay(config, envs, **kwargs)
    add_minari(replay, dataset)
    return replay


def add_minari(replay, dataset):
    """Adds all episodes of a Minari dataset to a replay.

    Latents start as zeros, updates replace them. The online queue leaves these
    rows out.

    Args:
        replay: `Replay` in which no episode is running: add datasets before a
            `Driver` begins.
        dataset: `minari.MinariDataset`, or the id of one on this machine.
    """
    dataset = _opened(dataset)
    _check_spaces(replay, dataset)
    for episode in dataset.iterate_episodes():
        replay.add_episode(_to_steps(dataset, episode))


def to_minari(replay, dataset_id, **metadata):
    """Writes the whole episodes of a replay as a Minari dataset.

    Actions are those that the environment received. Minari keeps datasets
    where the environment variable `MINARI_DATASETS_PATH` says.

    Args:
        replay: `Replay`.
        dataset_id: str. Name and version, as `"cartpole/dreamer-v0"`.
        **metadata: further arguments of Minari's
            `create_dataset_from_buffers`, such as `env`, `author`,
            `description`. It warns of those that are missing.

    Returns:
        `minari.MinariDataset`.
    """
    minari = optional("minari", "minari")
    buffers = (
        minari.data_collector.EpisodeBuffer(**_to_buffer(replay, episode))
        for episode in replay.episodes()
    )
    return minari.create_dataset_from_buffers(
        dataset_id,
        buffers,
        observation_space=replay.observation_space,
        action_space=replay.action_space,
        **{
            "algorithm_name": f"DreamerV3, keras_dreamer {__version__}",
            **metadata,
        },
    )


def _to_steps(dataset, episode):
    """Returns the T + 1 rows of an episode."""
    observation = spaces.to_model(
        dataset.observation_space, episode.observations, "observation"
    )
    action = action_to_model(dataset.action_space, episode.actions)
    _check_episode(episode, observation, action)
    rows = len(episode.rewards) + 1
    # An episode ends with its data, if by nothing else.
    last = np.arange(rows) == rows - 1
    return {
        "observation": observation,
        "action": {
            key: np.concatenate([value, np.zeros_like(value[:1])])
            for key, value in action.items()
        },
        "reward": np.concatenate([[0], episode.rewards]).astype("float32"),
        "is_first": np.arange(rows) == 0,
        "is_last": last,
        "is_terminal": last & bool(episode.terminations[-1]),
    }


def _to_buffer(replay, episode):
    """Returns the fields of Minari's buffer of an episode."""
    actions = {key: value[:-1] for key, value in episode["action"].items()}
    terminal = episode["is_terminal"][1:]
    ended = np.arange(len(terminal)) == len(terminal) - 1
    return {
        "observations": observation_from_model(
            replay.observation_space, episode["observation"]
        ),
        "actions": spaces.from_model(replay.action_space, actions, "action"),
        "rewards": episode["reward"][1:],
        "terminations": terminal,
        "truncations": ended & ~terminal,
        "infos": {},
    }


def _check_episode(episode, observation, action):
    steps = len(episode.rewards)
    for name, value, rows in [
        *((f"observation/{k}", v, steps + 1) for k, v in observation.items()),
        *((f"action/{k}", v, steps) for k, v in action.items()),
        ("reward", np.asarray(episode.rewards, "float32"), steps),
    ]:
        if len(value) != rows:
            raise ValueError(
                "An episode must have one observation more than rewards and "
                f"actions. Received: {len(value)} rows of {name} and {steps} "
                f"rewards in episode {episode.id}. Record the last "
                "observation of every episode, too."
            )
        _check_finite(episode, name, value)


def _check_finite(episode, name, value):
    if value.dtype.kind != "f":
        return
    bad = ~np.isfinite(value)
    if name.startswith("observation/"):
        bad &= ~np.isneginf(value)  # Marks what is not available.
    if bad.any():
        step = int(np.argwhere(bad)[0, 0])
        raise ValueError(
            "A dataset must hold finite numbers. Received: "
            f"{name}={value[step]} at step {step} of episode {episode.id}. "
            "Leave the episode out with `dataset.filter_episodes`."
        )


def _check_spaces(replay, dataset):
    given, expected = (
        # The bounds of actions are a scale, those of observations are not.
        (
            spaces.leaves(source.observation_space, "observation"),
            source.action_space,
        )
        for source in (dataset, replay)
    )
    if given != expected:
        raise ValueError(
            "The dataset must have the observation entries and the action "
            f"space of the replay. Received: {given}, required: {expected}. "
            "Make the replay for the environment of the dataset, or use "
            "`from_minari`."
        )


def _opened(dataset):
    if isinstance(dataset, str):
        return optional("minari", "minari").load_dataset(dataset)
    return dataset
