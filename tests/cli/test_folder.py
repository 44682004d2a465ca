import pathlib
import types

import pytest

from keras_dreamer_cli import folder


def test_settings_come_back(tmp_path):
    folder.create(tmp_path / "a" / "b", {"env": "gym:A-v0"})
    assert folder.read(tmp_path / "a" / "b") == {"env": "gym:A-v0"}


def test_another_run_is_not_overwritten(tmp_path):
    folder.create(tmp_path, {"env": "first"})
    with pytest.raises(ValueError, match="another run.*--logdir.*--resume"):
        folder.create(tmp_path, {"env": "second"})
    assert folder.read(tmp_path)["env"] == "first"


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(ValueError, match="required.*settings.json.*Name"):
        folder.read(tmp_path)


def test_default_logdir_is_a_plain_name():
    assert folder.default_logdir("gym:own/A-v0", 3) == "runs/gym_own_A-v0-seed3"


def train(**given):
    fields = {"env": None, "logdir": None, "seed": None, "resume": False}
    return types.SimpleNamespace(**{**fields, **given})


def test_logdir_of_a_command():
    given = pathlib.Path("a")
    assert folder.logdir(train(logdir=given, env="gym:A-v0")) == given
    found = folder.logdir(train(env="gym:A-v0", seed=2))
    assert found == pathlib.Path("runs/gym_A-v0-seed2")


def test_a_command_must_name_the_run():
    with pytest.raises(ValueError, match="neither an environment nor --logdir"):
        folder.logdir(train(resume=True))


def test_settings_are_replaced_as_a_whole(tmp_path):
    folder.create(tmp_path, {"steps": 1})
    folder.write(tmp_path, {"steps": 2})
    assert folder.read(tmp_path) == {"steps": 2}
    assert [path.name for path in tmp_path.iterdir()] == ["settings.json"]


def test_a_resumed_run_keeps_its_backend(tmp_path):
    folder.create(tmp_path, {"backend": "torch"})
    assert folder.backend(train(logdir=tmp_path, resume=True)) == "torch"
    assert folder.backend(train(logdir=tmp_path)) is None
    assert folder.backend(types.SimpleNamespace()) is None
