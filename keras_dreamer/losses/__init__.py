"""Losses and targets, as pure functions of tensors."""

from keras_dreamer.losses.actor_critic import continuation_weights
from keras_dreamer.losses.actor_critic import policy_loss
from keras_dreamer.losses.actor_critic import replay_value_loss
from keras_dreamer.losses.actor_critic import value_loss
from keras_dreamer.losses.returns import lambda_returns
from keras_dreamer.losses.returns import update_percentiles
from keras_dreamer.losses.two_hot import TwoHot
from keras_dreamer.losses.two_hot import symexp_bins
from keras_dreamer.losses.world_model import binary_cross_entropy
from keras_dreamer.losses.world_model import categorical_nll
from keras_dreamer.losses.world_model import kl_losses
from keras_dreamer.losses.world_model import symlog_mse

__all__ = [
    "TwoHot",
    "binary_cross_entropy",
    "categorical_nll",
    "continuation_weights",
    "kl_losses",
    "lambda_returns",
    "policy_loss",
    "replay_value_loss",
    "symexp_bins",
    "symlog_mse",
    "update_percentiles",
    "value_loss",
]
