"""DreamerV3 as a Keras 3 package for JAX, TensorFlow and PyTorch."""

from keras_dreamer import callbacks
from keras_dreamer import envs
from keras_dreamer import inspection
from keras_dreamer import layers
from keras_dreamer import losses
from keras_dreamer import optimizers
from keras_dreamer import replay
from keras_dreamer import spaces
from keras_dreamer.checkpoints.resume import resume
from keras_dreamer.config import Config
from keras_dreamer.driver import Driver
from keras_dreamer.evaluation import evaluate
from keras_dreamer.models.dreamer import Dreamer
from keras_dreamer.policy import Policy
from keras_dreamer.runtime import configure_runtime
from keras_dreamer.version import __version__

__all__ = [
    "Config",
    "Dreamer",
    "Driver",
    "Policy",
    "__version__",
    "callbacks",
    "configure_runtime",
    "envs",
    "evaluate",
    "inspection",
    "layers",
    "losses",
    "optimizers",
    "replay",
    "resume",
    "spaces",
]
