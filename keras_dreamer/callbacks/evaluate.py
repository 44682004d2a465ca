"""Evaluates the agent while it trains."""

import math
import re

import keras
import numpy as np
from gymnasium.vector import VectorEnv

from keras_dreamer import envs as environments
from keras_dreamer.callbacks.resumable import Resumable
from keras_dreamer.driver import check_spaces
from keras_dreamer.playing import check_episodes
from keras_dreamer.playing import play

_MOST_ENVS = 16  # That are made for a name.


class Evaluate(Resumable, keras.callbacks.Callback):
    """Plays whole episodes with the newest weights, at ends of epochs.

    Training goes on as if nothing had happened: environments and noise are
    its own.

    Adds to the logs `evaluation/return`, the mean over the episodes,
    `evaluation/length` in agent steps and `evaluation/ci`: the mean is known
    to `± ci` with 95 % confidence, by Student's t. They are NaN at ends of
    epochs without an evaluation.

    Args:
        envs: what `keras_dreamer.envs.make` returns or any gymnasium vector
            environment, but not the one of the `Driver`; or the name of an
            environment for `make`, which then gets the action repeat of the
            `Driver`'s environments.
        every: int or string. A number of epochs, or of environment steps such
            as `"10000 env steps"`: then the evaluation is at the end of the
            epoch in which they are full.
        episodes: int. How many to play, see `keras_dreamer.evaluate`.
        deterministic: bool. Whether to take the modes of the latents and of
            the policy. The published agent always samples.
        seed: int. Seed of the actions' noise, and of environments made for a
            name.
    """

    def __init__(
        self,
        envs: str | VectorEnv,
        every: int | str = 1,
        episodes: int = 10,
        deterministic: bool = False,
        seed: int = 1000,
    ) -> None:
        super().__init__()
        check_episodes(episodes)
        self.epochs, self.env_steps = _interval(every)
        self.episodes = episodes
        self.deterministic = deterministic
        self.seed = seed
        self._name = envs if isinstance(envs, str) else None
        self._envs = None if self._name else envs
        self._driver = None
        self._evaluations = 0
        self._evaluated = 0  # Environment steps at the last evaluation.

    def get_state(self):
        return {
            "evaluations": self._evaluations,
            "evaluated": self._evaluated,
        }

    def set_state(self, state):
        self._evaluations = state["evaluations"]
        self._evaluated = state["evaluated"]

    def set_ratio(self, ratio):
        """Takes the `TrainRatio` of `fit`, or `None`."""
        self._driver = ratio.driver if ratio else None

    def on_train_begin(self, logs=None):
        if self.env_steps and self._driver is None:
            raise ValueError(
                "`every` can count environment steps only beside `TrainRatio`. "
                f"Received: every='{self.env_steps} env steps' in a `fit` "
                "without it. Use a number of epochs."
            )
        if self._driver is not None and self._envs is self._driver.envs:
            raise ValueError(
                "`envs` must not be the environments of the `Driver`, whose "
                "episodes would be torn. Received the same ones. Make others "
                "with kd.envs.make(...)."
            )
        if self._name:
            self._envs = environments.make(
                self._name,
                num_envs=min(self.episodes, _MOST_ENVS),
                action_repeat=self._action_repeat(),
                seed=self.seed,
            )
        check_spaces(self._envs, self._model)

    def on_epoch_end(self, epoch, logs=None):
        logs = {} if logs is None else logs
        scores = self._evaluate() if self._is_due(epoch) else None
        known = scores is not None and len(scores.returns)
        # Under the same names after every epoch: `CSVLogger` needs it.
        logs["evaluation/return"] = scores.mean if known else math.nan
        logs["evaluation/length"] = (
            float(scores.lengths.mean()) if known else math.nan
        )
        logs["evaluation/ci"] = scores.ci if known else math.nan

    def on_train_end(self, logs=None):
        if self._name and self._envs is not None:
            self._envs.close()
            self._envs = None

    def _action_repeat(self):
        trained = self._driver and self._driver.envs
        if isinstance(trained, environments.Environments):
            return trained.action_repeat
        return 1

    def _is_due(self, epoch):
        if self.epochs:
            return (epoch + 1) % self.epochs == 0
        steps = self._driver.env_steps
        if steps // self.env_steps <= self._evaluated // self.env_steps:
            return False
        self._evaluated = steps
        return True

    def _evaluate(self):
        """Returns `Scores`, or `None` if Ctrl-C came before the end."""
        exchange = self._model.exchange
        rng = np.random.default_rng([self.seed, self._evaluations])
        self._evaluations += 1
        scores = play(
            self._model,
            self._envs,
            self.episodes,
            self.deterministic,
            rng,
            watch=lambda rows: exchange.interrupted,
        )
        return None if exchange.interrupted else scores


def _interval(every):
    """Returns numbers of epochs and of environment steps, one of them 0."""
    if isinstance(every, int) and every > 0:
        return every, 0
    match = re.fullmatch(r"([\d_,]+) env(?:ironment)? steps", str(every))
    if match and int(match[1].replace(",", "")) > 0:
        return 0, int(match[1].replace(",", ""))
    raise ValueError(
        "`every` must be a number of epochs or of environment steps. Received: "
        f"every={every!r}. Use for example 5 or '10000 env steps'."
    )
