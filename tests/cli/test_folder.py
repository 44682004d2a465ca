import pytest

from keras_dreamer_cli import folder


def test_settings_come_back(tmp_path):
    folder.create(tmp_path / "a" / "b", {"env": "gym:A-v0"})
    assert folder.read(tmp_path / "a" / "b") == {"env": "gym:A-v0"}


def test_another_run_is_not_overwritten(tmp_path):
    folder.create(tmp_path, {"env": "first"})
    with pytest.raises(ValueError, match="another run.*--logdir.*Choose"):
        folder.create(tmp_path, {"env": "second"})
    assert folder.read(tmp_path)["env"] == "first"


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(ValueError, match="required.*settings.json.*Name"):
        folder.read(tmp_path)


def test_default_logdir_is_a_plain_name():
    assert folder.default_logdir("gym:own/A-v0", 3) == "runs/gym_own_A-v0-seed3"
