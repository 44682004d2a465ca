"""What is known of an episode when it has ended."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Episode:
    """A finished episode.

    Attributes:
        stream: int. Index of its environment.
        episode_return: float. Sum of its rewards.
        length: int. Agent steps after the reset.
        step: int. Agent steps of all environments when it ended.
        env_steps: int. The same in steps of the simulators.
    """

    stream: int
    episode_return: float
    length: int
    step: int
    env_steps: int
