import importlib.metadata
import os
import subprocess
import sys
import types

import numpy as np
import pytest

from keras_dreamer.envs.dm_control import FromDmControl
from keras_dreamer.envs.dm_control import _prepare_import
from keras_dreamer.envs.dm_control import suite_task
from keras_dreamer.envs.make import make

dm_env = pytest.importorskip("dm_env")


class Scripted(dm_env.Environment):
    """Three steps, then an end with the given discount."""

    def __init__(self, discount=1.0, keys=("walker/height", "touch", "mode")):
        self.discount = discount
        self.keys = keys
        self.random_state = np.random.RandomState(0)

    def observation_spec(self):
        number = dm_env.specs.BoundedArray((), float, 0, 1)
        touch = dm_env.specs.Array((2,), np.uint8)
        mode = dm_env.specs.DiscreteArray(4)
        return dict(zip(self.keys, (number, touch, mode), strict=True))

    def action_spec(self):
        low, high = [-0.8, -1e10], [1.1, 1e10]
        return dm_env.specs.BoundedArray((2,), float, low, high)

    def reset(self):
        self.count = 0
        return dm_env.restart(self._observe())

    def step(self, action):
        self.action = action
        self.count += 1
        if self.count == 3:
            step_type = dm_env.StepType.LAST
            return dm_env.TimeStep(
                step_type, 2.0, self.discount, self._observe()
            )
        return dm_env.transition(1.0, self._observe())

    def _observe(self):
        height = self.random_state.uniform()
        values = height, np.zeros(2, "uint8"), 3
        return dict(zip(self.keys, values, strict=True))


def test_spaces_follow_the_specs():
    env = FromDmControl(Scripted())
    observation, _ = env.reset()
    assert env.observation_space.contains(observation)
    assert observation.keys() == {"walker_height", "touch", "mode"}
    assert observation["walker_height"].dtype == "float32"
    assert observation["walker_height"].shape == ()
    assert observation["touch"].dtype == "uint8"
    assert env.action_space.low.tolist() == [-0.8, -np.inf]
    assert env.action_space.high.tolist() == [1.1, np.inf]
    assert not env.action_space.bounded_above[1]


@pytest.mark.parametrize("discount", [0.0, 1.0, 0.9])
def test_only_a_zero_discount_terminates(discount):
    env = FromDmControl(Scripted(discount))
    env.reset()
    ends = [env.step(np.zeros(2))[1:4] for _ in range(3)]
    terminated = discount == 0
    assert ends == [
        (1.0, False, False),
        (1.0, False, False),
        (2.0, terminated, not terminated),
    ]


def test_seed_reaches_the_random_state():
    env = FromDmControl(Scripted())
    first = env.reset(seed=2**40 + 3)[0]["walker_height"]
    assert env.reset()[0]["walker_height"] != first
    assert env.reset(seed=2**40 + 3)[0]["walker_height"] == first


def test_seed_without_a_random_state_warns():
    env = Scripted()
    env.random_state, own = None, env.random_state
    with pytest.warns(UserWarning, match="seed has no effect.*Scripted.*Pass"):
        adapted = FromDmControl(env)
        env.random_state = own
        adapted.reset(seed=1)
    FromDmControl(env, random_state=own).reset(seed=1)


def test_keys_that_would_collide_are_refused():
    with pytest.raises(ValueError, match="stay distinct.*'a/b', 'a_b'"):
        FromDmControl(Scripted(keys=("a/b", "a_b", "c")))


def test_missing_package_names_the_extra(monkeypatch):
    def missing(package):
        raise importlib.metadata.PackageNotFoundError(package)

    monkeypatch.delitem(sys.modules, "dm_control", raising=False)
    monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(ImportError, match=r"keras-dreamer\[dmc\]"):
        make("dmc:walker_walk")


def test_untested_mujoco_is_refused(monkeypatch):
    monkeypatch.delitem(sys.modules, "dm_control", raising=False)
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "4.0.0")
    with pytest.raises(ImportError, match=r"mujoco 4.0.0.*'mujoco<4'"):
        make("dmc:walker_walk")


@pytest.mark.parametrize(
    "chosen, loaded, found",
    [
        (None, False, "disable"),
        ("egl", False, "egl"),
        (None, True, None),
    ],
)
def test_opengl_is_disabled_by_default(monkeypatch, chosen, loaded, found):
    monkeypatch.setenv("MUJOCO_GL", chosen or "")
    if chosen is None:
        monkeypatch.delenv("MUJOCO_GL")
    monkeypatch.delitem(sys.modules, "dm_control", raising=False)
    if loaded:
        monkeypatch.setitem(sys.modules, "dm_control", None)
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "3.17.0")
    _prepare_import()
    assert os.environ.get("MUJOCO_GL") == found


@pytest.mark.parametrize(
    "display, works, found",
    [
        (None, ["egl"], "egl"),
        (":0", ["egl", "glfw"], "glfw"),
        (":0", ["egl"], "egl"),
        (None, [], "disable"),
    ],
)
def test_a_renderer_is_looked_for_when_asked(
    monkeypatch, display, works, found
):
    for name in "MUJOCO_GL", "DISPLAY":
        monkeypatch.setenv(name, display or "")  # Restored after the test.
    monkeypatch.delenv("MUJOCO_GL")
    monkeypatch.delitem(sys.modules, "dm_control", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "3.17.0")

    def load(name):
        assert name == "dm_control._render"
        if os.environ["MUJOCO_GL"] not in works:
            raise ImportError("no such library")

    monkeypatch.setattr(importlib, "import_module", load)
    _prepare_import("rgb_array")
    assert os.environ["MUJOCO_GL"] == found


SCRIPT = """
import os, sys
import keras_dreamer.envs
assert "dm_control" not in sys.modules and "MUJOCO_GL" not in os.environ
envs = keras_dreamer.envs.make("dmc:walker_walk", 2, action_repeat=2, seed=1)
envs.reset()
envs.step(envs.action_space.sample())
assert "dm_control" in sys.modules and os.environ["MUJOCO_GL"] == "disable"
assert not {"OpenGL", "glfw"} & sys.modules.keys(), "OpenGL was imported"
"""


def test_import_does_nothing_and_make_needs_no_opengl():
    pytest.importorskip("dm_control")
    environ = {k: v for k, v in os.environ.items() if k != "MUJOCO_GL"}
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environ, capture_output=True
    )
    assert result.returncode == 0, result.stderr.decode()


class Physics:
    """Renders the number of the camera."""

    def __init__(self, cameras, contexts="some"):
        self.model = types.SimpleNamespace(ncam=cameras)
        self.contexts = contexts

    def render(self, height, width, camera_id):
        return np.full((height, width, 3), camera_id)


def test_pictures_come_from_the_first_camera():
    inner = Scripted()
    inner.control_timestep = lambda: 0.025
    inner.physics = Physics(2)
    env = FromDmControl(inner, render_mode="rgb_array")
    assert env.metadata["render_fps"] == 40
    assert env.render().shape == (240, 320, 3) and not env.render().any()
    inner.physics = Physics(0)
    assert (env.render() == -1).all()
    inner.physics = Physics(2, contexts=None)
    with pytest.raises(RuntimeError, match="nothing can render.*MUJOCO_GL=egl"):
        env.render()
    assert FromDmControl(inner).render() is None


class TestSuite:
    @pytest.fixture(autouse=True)
    def installed(self, monkeypatch):
        monkeypatch.setenv("MUJOCO_GL", "disable")
        pytest.importorskip("dm_control")

    def test_every_task_is_found_by_its_name(self):
        from dm_control import suite

        for domain, task in suite.ALL_TASKS:
            assert suite_task(f"{domain}_{task}") == (domain, task)
        assert suite_task("ball_in_cup_catch") == ("ball_in_cup", "catch")
        assert suite_task("humanoid_CMU_run") == ("humanoid_CMU", "run")

    @pytest.mark.parametrize(
        "name, near",
        [
            ("walker_wakl", "walker_walk"),
            ("cup_catch", "ball_in_cup_catch"),
            ("qqq", "walker_run"),  # Nothing is near: all are listed.
        ],
    )
    def test_unknown_task_lists_near_matches(self, name, near):
        with pytest.raises(ValueError, match=f"'{name}'.*Near.*'{near}'"):
            make(f"dmc:{name}")

    def test_observations_and_episode_end(self):
        kwargs = {"task_kwargs": {"time_limit": 0.25}}  # Ten physics steps.
        envs = make("dmc:walker_walk", 2, 4, seed=3, **kwargs)
        observation, _ = envs.reset()
        assert envs.single_observation_space["height"].shape == ()
        assert observation["orientations"].shape == (2, 14)
        assert {v.dtype.name for v in observation.values()} == {"float32"}
        action = np.zeros((2, 6))
        steps = [envs.step(action) for _ in range(3)]
        assert [s[3].tolist() for s in steps] == [[False] * 2] * 2 + [
            [True] * 2
        ]
        assert not any(s[2].any() for s in steps)
        counts = [s[4]["env_steps"].tolist() for s in steps]
        assert counts == [[4, 4], [4, 4], [2, 2]]

    @pytest.mark.parametrize("name", ["dmc:walker_walk", "dmc:lqr_lqr_2_1"])
    def test_same_seed_gives_the_same_environments(self, name):
        def run(seed):
            envs = make(name, 2, seed=seed)
            start, _ = envs.reset()
            action = np.full(envs.action_space.shape, 0.3)
            steps = [envs.step(action)[0] for _ in range(5)]
            again, _ = envs.reset()
            rows = *start.values(), *steps[-1].values(), *again.values()
            return np.concatenate([row.reshape(2, -1) for row in rows], 1)

        first, second, other = run(1), run(1), run(2)
        np.testing.assert_array_equal(first, second)
        assert not np.array_equal(first, other)
        assert not np.array_equal(first[0], first[1])

    def test_actuators_without_limits_are_unbounded(self):
        envs = make("dmc:lqr_lqr_2_1")
        assert np.isposinf(envs.single_action_space.high).all()

    def test_bounds_are_those_of_the_task(self):
        envs = make("dmc:quadruped_walk")
        assert envs.single_action_space.high.max() == 1.1

    def test_task_that_asks_for_a_rendering_context_needs_none(self):
        envs = make("dmc:quadruped_escape")
        observation, _ = envs.reset()
        assert observation["rangefinder"].shape == (1, 20)

    @pytest.mark.slow
    def test_every_task_runs(self):
        from dm_control import suite

        for domain, task in suite.ALL_TASKS:
            envs = make(f"dmc:{domain}_{task}", action_repeat=2)
            envs.reset()
            action = np.zeros(envs.action_space.shape)
            observation, *_ = envs.step(action)
            assert envs.observation_space.contains(observation)
            envs.close()
