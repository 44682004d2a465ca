import json

import pytest

from keras_dreamer.checkpoints import record
from keras_dreamer.replay.files import DamagedFile

CONTENT = {"updates": 3, "clock": 0.1 + 0.2, "none": None, "nest": [1, "é"]}


@pytest.fixture
def directory(tmp_path):
    (tmp_path / "rows.npz").write_bytes(b"12345")
    record.write(tmp_path, CONTENT)
    return tmp_path


def test_content_comes_back_with_format_versions_and_sizes(directory):
    content = record.read(directory)
    assert {key: content[key] for key in CONTENT} == CONTENT
    assert content["format"] == record.FORMAT
    assert content["files"] == {"rows.npz": 5}
    assert content["versions"].keys() >= {"python", "keras", "keras_dreamer"}
    assert content["time"].startswith("20")


def test_it_is_plain_json(directory):
    text = (directory / record.NAME).read_text(encoding="utf-8")
    assert json.loads(text)["content"]["updates"] == 3


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda path: path.unlink(), "it is missing"),
        (lambda path: path.write_text(""), "JSONDecodeError"),
        (lambda path: path.write_text("{}"), "KeyError: 'content'"),
        (
            lambda path: path.write_text(path.read_text()[:-9]),
            "JSONDecodeError",
        ),
        (
            lambda path: path.write_text(path.read_text().replace("1,", "2,")),
            "its checksum is another one",
        ),
        (lambda path: path.write_bytes(b"\xff\xfe{}"), "UnicodeDecodeError"),
    ],
)
def test_damage_is_named(directory, damage, message):
    damage(directory / record.NAME)
    with pytest.raises(DamagedFile, match=f"state.json.*{message}"):
        record.read(directory)


def test_sizes_of_the_other_files_are_checked(directory):
    (directory / "rows.npz").write_bytes(b"1234")
    with pytest.raises(DamagedFile, match="rows.npz.*4 bytes, 5 were written"):
        record.read(directory)
    (directory / "rows.npz").unlink()
    with pytest.raises(DamagedFile, match="rows.npz.*missing"):
        record.read(directory)


def test_another_format_is_refused(directory, monkeypatch):
    monkeypatch.setattr(record, "FORMAT", 7)
    with pytest.raises(ValueError, match="format 7. Received: .*of format 1"):
        record.read(directory)
