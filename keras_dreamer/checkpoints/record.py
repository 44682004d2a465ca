"""`state.json`: what a checkpoint holds besides weights and rows."""

import datetime
import importlib.metadata
import json
import platform
import zlib

from keras_dreamer.replay.files import DamagedFile
from keras_dreamer.replay.files import damage_named
from keras_dreamer.version import __version__

NAME = "state.json"
FORMAT = 1
_PACKAGES = (
    "keras numpy gymnasium jax jaxlib tensorflow tensorflow-cpu torch "
    "dm_control mujoco"
).split()


def write(directory, content):
    """Writes the record of a checkpoint whose other files are written.

    Args:
        directory: path of the checkpoint.
        content: dict for JSON.
    """
    sizes = {path.name: path.stat().st_size for path in directory.iterdir()}
    content = {
        "format": FORMAT,
        "time": datetime.datetime.now().isoformat(timespec="seconds"),
        "versions": versions(),
        **content,
        "files": sizes,
    }
    record = {"crc32": _crc32(content), "content": content}
    text = json.dumps(record, indent=1)
    (directory / NAME).write_text(text, encoding="utf-8")


def read(directory):
    """Returns the content of a record, after checking the files' sizes.

    Args:
        directory: path of the checkpoint.
    """
    path = directory / NAME
    if not path.exists():
        raise DamagedFile(path, "it is missing")
    with damage_named(path):
        record = json.loads(path.read_text(encoding="utf-8"))
        content = record["content"]
        if record["crc32"] != _crc32(content):
            raise DamagedFile(path, "its checksum is another one")
    if content["format"] != FORMAT:
        raise ValueError(
            f"This version reads checkpoints of format {FORMAT}. Received: "
            f"{str(directory)!r} of format {content['format']}, written with "
            f"{content['versions']}. Install that version."
        )
    for name, size in content["files"].items():
        file = directory / name
        if not file.exists():
            raise DamagedFile(file, "it is missing")
        if file.stat().st_size != size:
            found = file.stat().st_size
            raise DamagedFile(file, f"{found} bytes, {size} were written")
    return content


def versions():
    """Returns the versions of Python and of the packages that matter."""
    found = {"python": platform.python_version(), "keras_dreamer": __version__}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _crc32(content):
    return zlib.crc32(json.dumps(content, sort_keys=True).encode())
