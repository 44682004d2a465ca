"""Settings of the whole process that make training faster."""

import ctypes
import os
import pathlib
import sys

from keras_dreamer import backend

_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4  # malloc.h of glibc


def configure_runtime(
    cache: str | os.PathLike[str] | None = "~/.cache/keras_dreamer",
) -> None:
    """Sets this process up for training.

    Call it before the first model is made. On JAX, compiled programs are kept
    on disk, so that the next run starts sooner, and programs run in the
    calling thread of a CPU. With updates on a CPU under Linux, freed memory
    stays with the process: otherwise each update asks the system for hundreds
    of megabytes of zeroed pages anew.

    Args:
        cache: folder of the compiled programs, or `None` for no cache.

    Example:

    >>> keras_dreamer.configure_runtime(cache=None)
    """
    if cache is not None:
        cache = str(pathlib.Path(cache).expanduser())
    if backend.configure(cache) and sys.platform == "linux":
        _keep_freed_memory()


def _keep_freed_memory():
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:  # Not in every C library.
        mallopt(_M_MMAP_MAX, 0)
        mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)
