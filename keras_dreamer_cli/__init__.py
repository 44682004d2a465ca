"""The command line `keras-dreamer`.

A package of its own: Keras chooses its backend when it is imported, so the
arguments must be read before. Only the modules that a command names import
Keras and `keras_dreamer`, and nobody imports them earlier than `main` does.
"""

from keras_dreamer_cli.main import main

__all__ = ["main"]
