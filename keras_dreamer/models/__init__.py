"""The agent."""

from keras_dreamer.models.dreamer import Dreamer
from keras_dreamer.models.terms import LossTerms

__all__ = ["Dreamer", "LossTerms"]
