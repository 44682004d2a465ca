"""Reads the arguments, chooses the backend, then runs the command."""

import importlib
import sys

from keras_dreamer_cli.backend import choose_backend


def main(arguments=None):
    """Runs `keras-dreamer`.

    Args:
        arguments: list of strings, by default those of the process.

    Returns:
        int, the exit status. Wrong arguments give 2.
    """
    try:
        commands = importlib.import_module("keras_dreamer_cli.commands")
    except ModuleNotFoundError as error:
        if error.name != "tyro":
            raise
        print(
            "keras-dreamer needs the package tyro. Install it with "
            'pip install "keras-dreamer[cli]"',
            file=sys.stderr,
        )
        return 2
    command = commands.parse(arguments)
    try:
        choose_backend(command.backend)
        module = importlib.import_module(f"keras_dreamer_cli.{command.module}")
        module.run(command)
    except ValueError as error:
        print(f"keras-dreamer: {error}", file=sys.stderr)
        return 2
    return 0
