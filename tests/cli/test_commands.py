import subprocess
import sys
import typing

import pytest

pytest.importorskip("tyro")

from keras_dreamer.config import RECIPES
from keras_dreamer.config import SIZES
from keras_dreamer_cli import commands
from keras_dreamer_cli.presets import PRESETS


def test_train():
    command = commands.parse(
        "train gym:CartPole-v1 --size 1m --recipe head --ratio 64 --steps 9 "
        "--envs 2 --seed 7 --dtype mixed_bfloat16 --backend torch".split()
    )
    assert isinstance(command, commands.Train)
    assert (command.env, command.size) == ("gym:CartPole-v1", "1m")
    assert (command.ratio, command.steps, command.envs) == (64.0, 9, 2)
    assert (command.recipe, command.seed) == ("head", 7)
    assert (command.dtype, command.backend) == ("mixed_bfloat16", "torch")
    assert command.logdir is None


def test_what_is_left_out_is_left_to_the_preset():
    command = commands.parse(["train", "dmc:walker_walk"])
    names = (
        "preset size recipe ratio steps envs seed dtype checkpoint_minutes "
        "backend".split()
    )
    assert {getattr(command, name) for name in names} == {None}


def test_resume_needs_no_environment():
    command = commands.parse(["train", "--resume", "--logdir", "runs/a"])
    assert (command.env, command.resume) == (None, True)
    command = commands.parse("train --checkpoint-minutes 0.5 gym:A-v0".split())
    assert (command.env, command.resume) == ("gym:A-v0", False)
    assert command.checkpoint_minutes == 0.5
    assert command.on_env_error is None
    command = commands.parse("train --on-env-error restart gym:A-v0".split())
    assert command.on_env_error == "restart"


def test_evaluate():
    command = commands.parse(
        ["evaluate", "runs/a", "--episodes", "3", "--deterministic"]
    )
    assert (command.logdir.name, command.episodes) == ("a", 3)
    assert command.deterministic and command.record is None
    command = commands.parse(["evaluate", "runs/a", "--record", "a.mp4"])
    assert command.record.name == "a.mp4"


def test_plot():
    command = commands.parse(["plot", "runs/a", "runs/b", "--out", "pictures"])
    assert [path.name for path in command.logdirs] == ["a", "b"]
    assert (command.out.name, command.env) == ("pictures", None)


def test_choices_are_those_of_the_package():
    assert set(typing.get_args(commands.Size)) == set(SIZES)
    assert set(typing.get_args(commands.Preset)) == set(PRESETS)
    hints = typing.get_type_hints(commands.Settings)["recipe"]
    recipe, _ = typing.get_args(hints)
    assert set(typing.get_args(recipe)) == set(RECIPES)


def test_unknown_choices_are_refused(capsys):
    with pytest.raises(SystemExit):
        commands.parse(["train", "gym:CartPole-v1", "--size", "huge"])
    assert "huge" in capsys.readouterr().err


def test_parsing_imports_no_keras():
    code = (
        "import sys; from keras_dreamer_cli import commands, main; "
        "commands.parse(['train', 'gym:A-v0']); assert 'keras' not in "
        "sys.modules and 'keras_dreamer' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
