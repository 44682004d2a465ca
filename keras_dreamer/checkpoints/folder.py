"""Numbered directories of which every one is complete."""

import contextlib
import os
import pathlib
import re
import shutil

_UNFINISHED = ".unfinished"


class Folder:
    """The checkpoints of a run, `logdir/checkpoints/00000001` and so on.

    A checkpoint is written under another name and gets its own when all of it
    is on the disk, so what carries such a number is complete, whenever the
    process or the machine stops. It loses the number before it is removed.

    Args:
        logdir: path of the run.
    """

    def __init__(self, logdir):
        self.path = pathlib.Path(logdir) / "checkpoints"

    def finished(self):
        """Returns the paths of all checkpoints, the oldest first."""
        if not self.path.is_dir():
            return []
        return sorted(
            path
            for path in self.path.iterdir()
            if re.fullmatch(r"\d{8}", path.name) and path.is_dir()
        )

    @contextlib.contextmanager
    def new(self):
        """Gives an empty directory that becomes the newest checkpoint.

        If an error is raised inside, everything is as before.

        Yields:
            Path of the directory, valid until the end of the block.
        """
        if not self.path.is_dir():
            self.path.mkdir(parents=True)
            _sync(self.path.parent)
        self._remove_unfinished()
        path = self._next()
        unfinished = path.with_suffix(_UNFINISHED)
        unfinished.mkdir()
        try:
            yield unfinished
            for file in unfinished.iterdir():
                _sync(file)
            _sync(unfinished)
            unfinished.rename(path)
            _sync(self.path)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise

    def keep(self, count):
        """Removes all but the newest checkpoints."""
        for path in self.finished()[:-count]:
            path.rename(path.with_suffix(_UNFINISHED))
        self._remove_unfinished()

    def _next(self):
        finished = self.finished()
        number = int(finished[-1].name) + 1 if finished else 1
        return self.path / f"{number:08d}"

    def _remove_unfinished(self):
        for path in self.path.glob(f"*{_UNFINISHED}"):
            shutil.rmtree(path, ignore_errors=True)


def _sync(path):
    """Waits until a file or directory is on the disk."""
    if path.is_dir() and os.name == "nt":
        return  # Windows does not open directories.
    file = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(file)
    finally:
        os.close(file)
