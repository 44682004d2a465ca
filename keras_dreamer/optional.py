"""Packages that only some of the functions need."""

import importlib


def optional(module, extra):
    """Imports a package that may not be installed.

    Args:
        module: str. Its name.
        extra: str. Extra of keras-dreamer that installs it.

    Returns:
        The module. An `ImportError` says how to install it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{module} is not installed ({error}). Install it with "
            f'pip install "keras-dreamer[{extra}]"'
        ) from error
