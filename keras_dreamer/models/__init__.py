"""The agent; `keras_dreamer.Dreamer` puts its parts together."""
