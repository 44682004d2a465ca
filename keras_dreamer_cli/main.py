"""Reads the arguments, chooses the backend, then runs the command."""

import importlib
import os
import sys

from keras_dreamer_cli import folder
from keras_dreamer_cli.backend import choose_backend


def main(arguments=None):
    """Runs `keras-dreamer`.

    Args:
        arguments: list of strings, by default those of the process.

    Returns:
        int, the exit status. Wrong arguments give 2, Ctrl-C 130.
    """
    try:
        return _run(arguments)
    except ValueError as error:
        return _say(error)
    except ImportError as error:
        if error.name:  # Python's own. Ours says which extra to install.
            raise
        return _say(error)
    except BrokenPipeError:  # `keras-dreamer envs | head` has read enough.
        sys.stdout = open(os.devnull, "w")
        return 0
    except KeyboardInterrupt:
        print("keras-dreamer: interrupted", file=sys.stderr)
        return 130


def _run(arguments):
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
    choose_backend(command.backend, folder.backend(command))
    module = importlib.import_module(f"keras_dreamer_cli.{command.module}")
    status = module.run(command) or 0
    sys.stdout.flush()
    return status


def _say(error):
    print(f"keras-dreamer: {error}", file=sys.stderr)
    return 2
