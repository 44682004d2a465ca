"""Distributions as pure functions of tensors; noise comes from outside."""

from keras_dreamer.distributions.categorical import Categorical
from keras_dreamer.distributions.normal import Normal

__all__ = ["Categorical", "Normal"]
