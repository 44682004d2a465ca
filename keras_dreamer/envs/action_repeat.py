"""Repeats every action for several steps of the simulator."""

import gymnasium


class ActionRepeat(gymnasium.Wrapper):
    """Repeats every action and sums the rewards.

    The repetition stops at the end of the episode. The observation and info
    are those of the last inner step, and `info["env_steps"]` is the number of
    inner steps done. Resets are not repeated.

    Source: danijar/dreamerv3 at e3f0224, embodied/core/wrappers.py:57-73.

    Args:
        env: gymnasium environment.
        repeat: int. Number of inner steps per action.

    Example:

    >>> env = keras_dreamer.envs.ActionRepeat(env, repeat=2)
    """

    def __init__(self, env: gymnasium.Env, repeat: int) -> None:
        super().__init__(env)
        if int(repeat) != repeat or repeat < 1:
            raise ValueError(
                "`action_repeat` must be an integer of 1 or more. Received: "
                f"action_repeat={repeat}. Use 1 for no repetition."
            )
        self.repeat = int(repeat)

    def step(self, action):
        total, count, ended = 0.0, 0, False
        while count < self.repeat and not ended:
            step = self.env.step(action)
            observation, reward, terminated, truncated, info = step
            ended = terminated or truncated
            total += reward
            count += 1
        info = {**info, "env_steps": count}
        return observation, total, terminated, truncated, info
