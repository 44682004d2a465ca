"""Experience replay: what the agent learns from."""

from keras_dreamer.replay.dataset import ReplayDataset
from keras_dreamer.replay.minari_data import add_minari
from keras_dreamer.replay.minari_data import from_minari
from keras_dreamer.replay.minari_data import to_minari
from keras_dreamer.replay.replay import Replay

__all__ = [
    "Replay",
    "ReplayDataset",
    "add_minari",
    "from_minari",
    "to_minari",
]
