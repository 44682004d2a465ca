"""The version of the package, read by the build and by `keras_dreamer`."""

__version__ = "0.1.0.dev0"
