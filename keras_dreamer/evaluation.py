"""Returns of a policy, without training."""

from typing import TYPE_CHECKING
from typing import Any
from typing import Union

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector import SyncVectorEnv

from keras_dreamer.envs.checked import Checked
from keras_dreamer.envs.environments import Environments
from keras_dreamer.envs.environments import spread
from keras_dreamer.playing import check_episodes
from keras_dreamer.playing import play
from keras_dreamer.policy import Policy
from keras_dreamer.scores import Scores
from keras_dreamer.video import Video

if TYPE_CHECKING:
    from keras_dreamer.models.dreamer import Dreamer


def evaluate(
    model: Union["Dreamer", Policy],
    env: gymnasium.Env | gymnasium.vector.VectorEnv,
    episodes: int = 20,
    deterministic: bool = False,
    record: Any = None,
    seed: int = 0,
) -> Scores:
    """Plays whole episodes and returns what they scored.

    The result is that of a loop with `model.act` over the same episodes.
    Every environment plays the same number of episodes, so that short
    episodes are not overrepresented.

    Args:
        model: `Dreamer` or `Policy`.
        env: what `keras_dreamer.envs.make` returns, any gymnasium vector
            environment, or a single gymnasium environment. Not the one that a
            `Driver` is using.
        episodes: int. At least so many; the next multiple of the number of
            environments is played.
        deterministic: bool. Whether to take the modes of the latents and of
            the policy. The published agent always samples.
        record: path of a video of the first episode of the first environment,
            ending in ".mp4" or ".gif" (extra `video`), or `None`. The
            environments must be made with `render_mode="rgb_array"`. What is
            missing for it gives a warning and no video.
        seed: int. Seed of the actions' noise, which is not that of training:
            evaluating does not change a run.

    Returns:
        `Scores` with `returns` and `lengths` of all episodes, and of the
        returns `mean`, `min`, `max` and `ci`: the mean is known to `± ci`
        with 95 % confidence, by Student's t.

    Example:

    >>> envs = keras_dreamer.envs.make("gym:Pendulum-v1", num_envs=4)
    >>> scores = keras_dreamer.evaluate(model, envs, episodes=8)
    >>> scores.mean, scores.ci
    """
    check_episodes(episodes)
    if isinstance(model, Policy):
        model = model.model
    envs = _vector(env, seed)
    rng = np.random.default_rng(seed)
    if record is None:
        return play(model, envs, episodes, deterministic, rng)
    video = Video(record, envs)
    try:
        return play(model, envs, episodes, deterministic, rng, video.watch)
    finally:
        video.close()


def _vector(env, seed):
    if isinstance(env, gymnasium.vector.VectorEnv):
        return env
    if not isinstance(env, gymnasium.Env):
        raise ValueError(
            "`env` must be an environment or a vector of them. Received: "
            f"env={env!r}. Make some with kd.envs.make(...)."
        )
    vector = SyncVectorEnv(
        [lambda: Checked(env)], autoreset_mode=AutoresetMode.NEXT_STEP
    )
    return Environments(vector, spread(seed, 1))
