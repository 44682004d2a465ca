"""Files of a replay."""

import os
import pathlib
import types
from typing import Any
from typing import Self

from keras_dreamer import spaces
from keras_dreamer.config import Config
from keras_dreamer.replay import storage
from keras_dreamer.replay.snapshots import INDEX


class Saving:
    """Mixin of the replay: saves, loads, and opens what was saved."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes everything into one `.npz` file, sampler included.

        The file appears under its name when it is complete.

        Args:
            path: path of the file.
        """
        with self._lock:
            storage.save(path, self.schema, self._items, self._pool, self._rng)

    def save_changes(self, directory, previous=None):
        """Writes everything into a directory, rows that are new as a new file.

        Args:
            directory: path of an empty directory.
            previous: path of the directory that was written before, whose
                files stand for the rows that have not changed.
        """
        with self._lock:
            self._snapshots.save(
                directory,
                previous,
                self.schema,
                self._items,
                self._pool,
                self._rng,
            )

    def load(self, path: str | os.PathLike[str]) -> None:
        """Replaces the content by what was saved.

        The number of streams, the length of the windows and the spaces must be
        the same. `deter` is cast when the dtypes differ. With a smaller
        `capacity` the oldest items are evicted.

        Args:
            path: path of a file written by `save`, or of a directory written
                by `save_changes`, such as that of a checkpoint.
        """
        path = pathlib.Path(path)
        load = self._snapshots.load if path.is_dir() else storage.load
        with self._lock:
            pool = self._empty_pool()
            load(path, self.schema, self._items, pool, self._rng)
            self._pool = pool

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], config: Config, **kwargs: Any
    ) -> Self:
        """Returns the replay that was saved, for training without environments.

        Its `observation_space` and `action_space` are those of the model.

        Args:
            path: what `load` takes.
            config: `Config`, with the sizes of the saved replay.
            **kwargs: arguments of `Replay` after `envs`.

        Returns:
            `Replay`.

        Example:

        >>> replay = keras_dreamer.replay.Replay.open("walker.npz", config)
        >>> model = keras_dreamer.Dreamer(
        ...     replay.observation_space, replay.action_space, config
        ... )
        >>> model.compile()
        >>> dataset = keras_dreamer.replay.ReplayDataset(replay)
        >>> history = model.fit(dataset, steps_per_epoch=1000)
        """
        path = pathlib.Path(path)
        meta, _ = storage.read_index(path / INDEX if path.is_dir() else path)
        envs = types.SimpleNamespace(
            num_envs=meta["num_envs"],
            single_observation_space=spaces.from_config(
                meta["observation_space"]
            ),
            single_action_space=spaces.from_config(meta["action_space"]),
        )
        replay = cls(config, envs, **kwargs)
        replay.load(path)
        return replay
