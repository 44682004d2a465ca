"""Experience replay: what the agent learns from."""

from keras_dreamer.replay.dataset import ReplayDataset
from keras_dreamer.replay.replay import Replay

__all__ = ["Replay", "ReplayDataset"]
