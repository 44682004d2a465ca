"""Collects experience between updates, at a fixed ratio."""

import dataclasses
import time
from typing import TYPE_CHECKING

import keras
import numpy as np

from keras_dreamer.callbacks.clock import RatioClock
from keras_dreamer.callbacks.resumable import Resumable
from keras_dreamer.episode import Episode

if TYPE_CHECKING:
    from keras_dreamer.driver import Driver


class TrainRatio(Resumable, keras.callbacks.Callback):
    """Steps the environments until the next update is due.

    An update is due after every `batch_size * batch_length / ratio` agent
    steps, counted transition by transition over all environments. The first
    one runs as soon as the replay holds `batch_size * batch_length` windows.
    Training stops when `total_steps` agent steps are collected.

    Source: DreamerV3 (https://arxiv.org/abs/2301.04104v2), p. 18; items 6.1
    and 6.2, Algorithm K.

    Adds to the logs: `episode/return`, `episode/length` (in agent steps) and
    `episodes` of the epoch, `cut_episodes` (of the run, by environments that
    failed and were replaced), `agent_steps`, `env_steps` (an action that is
    repeated counts every time), `updates`, `replay_ratio` (as achieved),
    `updates/s` and `env_steps/s`.

    Args:
        driver: `Driver`.
        ratio: float. Trained steps per agent step, the replay ratio.
        total_steps: int or `None`. Budget in agent steps over all
            environments; `None` leaves the end to `fit`.
    """

    def __init__(
        self, driver: "Driver", ratio: float, total_steps: int | None = None
    ) -> None:
        super().__init__()
        if ratio <= 0:
            raise ValueError(
                "`ratio` must be positive. Received: "
                f"ratio={ratio}. To train on what the replay holds, without "
                "environments, leave the callback out."
            )
        self.driver = driver
        self.ratio = ratio
        self.total_steps = total_steps
        self.updates = 0
        self._dataset = None
        self._clock = None
        self._first_step = 0
        self._due = 0
        self._episodes = []  # Of the epoch.
        self._resumed = None  # What the clock goes on from.

    def get_state(self):
        return {
            "updates": self.updates,
            "first_step": self._first_step,
            "due": self._due,
            "clock": {
                "previous": self._clock.previous,
                "step": self.driver.step,
                "ratio": self._clock.ratio,
            },
            "episodes": [dataclasses.asdict(e) for e in self._episodes],
            "driver": self.driver.get_state(),
        }

    def set_state(self, state):
        self.updates = state["updates"]
        self._first_step = state["first_step"]
        self._due = state["due"]
        self._clock, self._resumed = None, state["clock"]
        self._episodes = [Episode(**episode) for episode in state["episodes"]]
        self.driver.set_state(state["driver"])

    def set_dataset(self, dataset):
        """Takes the size of the batches from the dataset of `fit`."""
        self._dataset = dataset

    @property
    def episodes(self) -> list[Episode]:
        """Finished episodes of the epoch, a list of `Episode`s."""
        return self._episodes

    def updates_left(self):
        """Returns the updates that the budget still gives, a float."""
        steps = self._budget() - self.driver.step
        return steps * self.ratio / self._trained

    def on_train_begin(self, logs=None):
        if self._dataset is None:
            raise ValueError(
                "`TrainRatio` needs a `ReplayDataset`, whose batches it "
                "counts. Received another dataset. Call "
                "model.fit(ReplayDataset(replay), ...)."
            )
        self._trained = self._dataset.batch_size * self._dataset.batch_length
        if self._clock is None:
            self._clock = RatioClock(self.ratio / self._trained)
        if self._resumed is not None:
            self._clock.resume(**self._resumed)
            self._resumed = None
        self._check_reachable()

    def on_epoch_begin(self, epoch, logs=None):
        self._start = (time.perf_counter(), self.updates, self.driver.env_steps)

    def on_train_batch_begin(self, batch, logs=None):
        while not self._due:
            if self._model.exchange.interrupted:
                raise KeyboardInterrupt
            self._advance()

    def on_train_batch_end(self, batch, logs=None):
        self.updates += 1
        self._due -= 1
        if not self._due and self._next_step() > self._budget():
            # No update is due any more: collect what is left and stop.
            while self.driver.step < self._budget():
                self._take(self._budget() - self.driver.step)
            self._model.stop_training = True
        if logs is not None:
            logs.update(self._summary())

    def on_epoch_end(self, epoch, logs=None):
        if logs is not None:
            logs.update(self._summary())
        self._episodes = []

    def _advance(self):
        """Collects up to the next transition that may make an update due."""
        driver = self.driver
        missing = self._trained - len(driver.replay)
        if missing > 0:
            # Every transition adds one window at the most.
            self._take(missing)
        else:
            self._take(self._next_step() - driver.step)
        if len(driver.replay) >= self._trained:
            if self._clock.previous is None:
                self._first_step = driver.step
            self._due = self._clock(driver.step)

    def _take(self, limit):
        self.driver.advance(int(limit))
        while self.driver.episodes:
            self._episodes.append(self.driver.episodes.popleft())

    def _next_step(self):
        return self._clock.next_step(self.driver.step)

    def _budget(self):
        return np.inf if self.total_steps is None else self.total_steps

    def _summary(self):
        driver = self.driver
        start, updates, env_steps = self._start
        seconds = max(time.perf_counter() - start, 1e-9)
        returns = [episode.episode_return for episode in self._episodes]
        lengths = [episode.length for episode in self._episodes]
        collected = max(1, driver.step - self._first_step)
        return {
            "episode/return": _mean(returns),
            "episode/length": _mean(lengths),
            "episodes": len(returns),
            "cut_episodes": driver.cut_episodes,
            "agent_steps": driver.step,
            "env_steps": driver.env_steps,
            "updates": self.updates,
            "replay_ratio": self.updates * self._trained / collected,
            "updates/s": (self.updates - updates) / seconds,
            "env_steps/s": (driver.env_steps - env_steps) / seconds,
        }

    def _check_reachable(self):
        """Refuses runs that would collect for ever and never train."""
        replay, envs = self.driver.replay, self.driver.envs.num_envs
        if replay.capacity < self._trained:
            raise ValueError(
                "The replay must hold batch_size * batch_length = "
                f"{self._trained} windows before the first update. Received: "
                f"capacity={replay.capacity}. Use a larger capacity or smaller "
                "batches."
            )
        # A transition completes one window at the most, and none in the first
        # `length - 1` rows of an environment.
        if self._due:
            return
        first = self.driver.step + max(1, self._trained - len(replay))
        first = max(first, self._next_step())
        if not len(replay):
            first = self._trained + envs * (replay.length - 1)
        if self.driver.step >= self._budget() or first > self._budget():
            raise ValueError(
                f"`total_steps` must leave room for updates: with {envs} "
                f"environments the first one is due after {first} agent "
                f"steps, and {self.driver.step} are used. Received: "
                f"total_steps={self.total_steps}. Raise it or train on smaller "
                "batches."
            )


def _mean(values):
    return float(np.mean(values)) if values else float("nan")
