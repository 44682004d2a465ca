"""Keras callbacks: everything that happens around an update."""

from keras_dreamer.callbacks.checkpoint import Checkpoint
from keras_dreamer.callbacks.clock import RatioClock
from keras_dreamer.callbacks.evaluate import Evaluate
from keras_dreamer.callbacks.latent_write_back import LatentWriteBack
from keras_dreamer.callbacks.progress import Progress
from keras_dreamer.callbacks.resumable import Resumable
from keras_dreamer.callbacks.run_log import RunLog
from keras_dreamer.callbacks.slow_critic import SlowCritic
from keras_dreamer.callbacks.train_ratio import TrainRatio

__all__ = [
    "Checkpoint",
    "Evaluate",
    "LatentWriteBack",
    "Progress",
    "RatioClock",
    "RunLog",
    "Resumable",
    "SlowCritic",
    "TrainRatio",
]
