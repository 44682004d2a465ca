"""Keras layers of the agent, usable on their own."""

from keras_dreamer.layers.block_dense import BlockDense
from keras_dreamer.layers.block_gru import BlockGRU
from keras_dreamer.layers.bounded_normal import BoundedNormal
from keras_dreamer.layers.categorical_head import CategoricalHead
from keras_dreamer.layers.continue_head import ContinueHead
from keras_dreamer.layers.decoder import Decoder
from keras_dreamer.layers.encoder import Encoder
from keras_dreamer.layers.initializers import FanInTruncatedNormal
from keras_dreamer.layers.mlp import MLP
from keras_dreamer.layers.policy import Policy
from keras_dreamer.layers.rms_norm import RMSNorm
from keras_dreamer.layers.rssm import RSSM
from keras_dreamer.layers.two_hot_head import TwoHotHead

__all__ = [
    "MLP",
    "RSSM",
    "BlockDense",
    "BlockGRU",
    "BoundedNormal",
    "CategoricalHead",
    "ContinueHead",
    "Decoder",
    "Encoder",
    "FanInTruncatedNormal",
    "Policy",
    "RMSNorm",
    "TwoHotHead",
]
