"""Optimizers."""

from keras_dreamer.optimizers.laprop import LaProp

__all__ = ["LaProp"]
