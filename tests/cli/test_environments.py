import importlib.util
import subprocess
import sys

import gymnasium

from keras_dreamer_cli import environments


def hide(monkeypatch, *hidden):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name: None if name in hidden else find(name),
    )


def test_the_newest_versions_of_gymnasium():
    names = environments.gym_names()
    assert {"gym:CartPole-v1", "gym:Pendulum-v1"} <= set(names)
    assert "gym:CartPole-v0" not in names
    assert names == sorted(names)


def test_what_needs_missing_packages_is_left_out(monkeypatch):
    hide(monkeypatch, "Box2D", "mujoco", "dm_control")
    names = environments.gym_names()
    assert not any("LunarLander" in name or "Ant-" in name for name in names)
    assert environments.dmc_names() == []


def test_own_registrations_are_listed():
    gymnasium.register("own/Target-v3", entry_point=lambda: None)
    try:
        assert "gym:own/Target-v3" in environments.gym_names()
    finally:
        del gymnasium.registry["own/Target-v3"]


def test_pictures_are_left_out(monkeypatch):
    # As if everything were installed.
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: True)
    atari = {"entry_point": "ale_py.env:AtariEnv"}
    gymnasium.register("own/Pong-v5", **atari)
    gymnasium.register("own/PongRam-v5", **atari, kwargs={"obs_type": "ram"})
    try:
        names = environments.gym_names()
    finally:
        del gymnasium.registry["own/Pong-v5"]
        del gymnasium.registry["own/PongRam-v5"]
    assert "gym:LunarLander-v3" in names and "gym:own/PongRam-v5" in names
    assert not {"gym:CarRacing-v3", "gym:own/Pong-v5"} & set(names)


def test_what_is_left_out_as_pictures_exists():
    points = [spec.entry_point for spec in gymnasium.registry.values()]
    assert "gymnasium.envs.box2d.car_racing:CarRacing" in points
    assert set(environments._PICTURES) - set(points) <= {
        "ale_py.env:AtariEnv"  # Of another package.
    }


def test_prints_one_name_a_line():
    # A process of its own: dm_control and TensorFlow in one process have
    # crashed, depending on the order of imports.
    result = subprocess.run(
        [sys.executable, "-m", "keras_dreamer_cli", "envs"],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = result.stdout.splitlines()
    assert "gym:CartPole-v1" in lines
    if importlib.util.find_spec("dm_control"):
        assert "dmc:ball_in_cup_catch" in lines
