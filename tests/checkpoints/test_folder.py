import os

import pytest

from keras_dreamer.checkpoints.folder import Folder


def names(folder):
    return sorted(path.name for path in folder.path.iterdir())


def add(folder, text="x"):
    with folder.new() as path:
        (path / "file").write_text(text)


def test_checkpoints_are_numbered_in_order(tmp_path):
    folder = Folder(tmp_path / "new" / "run")
    assert folder.finished() == []
    for text in "abc":
        add(folder, text)
    assert names(folder) == ["00000001", "00000002", "00000003"]
    texts = [(path / "file").read_text() for path in folder.finished()]
    assert texts == ["a", "b", "c"]


def test_old_ones_are_removed_and_numbers_not_used_again(tmp_path):
    folder = Folder(tmp_path)
    for _ in range(4):
        add(folder)
    folder.keep(2)
    assert names(folder) == ["00000003", "00000004"]
    folder.keep(5)
    add(folder)
    assert names(folder) == ["00000003", "00000004", "00000005"]


def test_it_has_no_number_before_it_is_complete(tmp_path):
    folder = Folder(tmp_path)
    add(folder)
    with folder.new() as path:
        (path / "file").write_text("half")
        assert [p.name for p in folder.finished()] == ["00000001"]
    assert [p.name for p in folder.finished()] == ["00000001", "00000002"]


@pytest.mark.parametrize("error", [OSError(28, "full"), KeyboardInterrupt()])
def test_an_error_leaves_what_was_there(tmp_path, error):
    folder = Folder(tmp_path)
    add(folder)
    with pytest.raises(type(error)), folder.new() as path:
        (path / "file").write_text("half")
        raise error
    assert names(folder) == ["00000001"]


@pytest.mark.parametrize("call", range(4))
def test_a_disk_that_fails_leaves_what_was_there(tmp_path, monkeypatch, call):
    # Two files, the directory, and the one above, after the rename.
    folder = Folder(tmp_path)
    add(folder)
    calls = []

    def fsync(file):
        calls.append(file)
        if len(calls) > call:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError), folder.new() as path:
        (path / "one").write_text("1")
        (path / "two").write_text("2")
    monkeypatch.undo()
    # When the last one fails, all of the checkpoint is there nevertheless.
    assert names(folder) == ["00000001", "00000002"][: 1 + (call == 3)]
    assert (folder.path / "00000001" / "file").read_text() == "x"


def test_everything_is_synced_before_and_after_the_rename(
    tmp_path, monkeypatch
):
    folder = Folder(tmp_path)
    add(folder)
    synced = []
    fsync = os.fsync

    def watch(file):
        synced.append(os.path.basename(os.readlink(f"/proc/self/fd/{file}")))
        fsync(file)

    if not os.path.exists("/proc/self/fd"):
        pytest.skip("reads the names of open files from /proc")
    monkeypatch.setattr(os, "fsync", watch)
    with folder.new() as path:
        (path / "one").write_text("1")
        (path / "two").write_text("2")
    assert sorted(synced[:2]) == ["one", "two"]
    assert synced[2:] == ["00000002.unfinished", "checkpoints"]


def test_what_a_killed_process_left_is_removed(tmp_path):
    folder = Folder(tmp_path)
    add(folder)
    (folder.path / "00000002.unfinished").mkdir()
    (folder.path / "00000002.unfinished" / "file").write_text("half")
    (folder.path / "notes").mkdir()
    assert [path.name for path in folder.finished()] == ["00000001"]
    add(folder)
    assert names(folder) == ["00000001", "00000002", "notes"]
