import sys
import warnings

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.vector import SyncVectorEnv
from scripted import Puppet
from scripted import Scripted
from scripted import make_scripted

import keras_dreamer as kd
from keras_dreamer.playing import play
from keras_dreamer.video import Video


class Painted(Scripted):
    """Renders its number of steps, in odd sizes."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}
    render_mode = "rgb_array"

    def render(self):
        return np.full((33, 49, 3), 20 * self.count, "uint8")


class Broken(Painted):
    """Cannot render its third step."""

    def render(self):
        if self.count == 3:
            raise OSError("the display is gone")
        return super().render()


class Blind(Painted):
    def render(self):
        return None


def record(envs, path, episodes=2):
    """Plays episodes; returns their lengths."""
    video = Video(path, envs)
    rng = np.random.default_rng(0)
    scores = play(Puppet(envs), envs, episodes, False, rng, video.watch)
    video.close()
    return scores.lengths.tolist()


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda m: m.name)
def test_frames_are_those_of_one_episode(tmp_path, mode):
    imageio = pytest.importorskip("imageio.v3")
    lengths = (3, 2, 9)
    envs = SyncVectorEnv(
        [lambda n=n: Painted(n, lengths) for n in range(2)],
        autoreset_mode=mode,
    )
    path = tmp_path / "new" / "video.gif"
    assert record(envs, path) == [3, 2]
    # Other modes have reset the environment before its last picture.
    expected = [0, 20, 40, 60][: 4 if mode is AutoresetMode.NEXT_STEP else 3]
    assert imageio.imread(path)[:, 0, 0, 0].tolist() == expected


# imageio leaves pipes open where it reads.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", ["video.mp4", "video.gif"])
def test_files_have_the_speed_of_the_environment(tmp_path, name):
    imageio = pytest.importorskip("imageio.v3")
    pytest.importorskip("imageio_ffmpeg")
    envs = make_scripted(1, action_repeat=2, env=Painted, lengths=(8,))
    record(envs, tmp_path / name, episodes=1)
    frames = imageio.imread(tmp_path / name)
    assert frames.shape == (5, 32, 48, 3)
    # The codec is not exact.
    np.testing.assert_allclose(
        frames.mean((1, 2, 3)), [0, 40, 80, 120, 160], atol=8
    )
    meta = imageio.immeta(tmp_path / name)
    # Every second of 10 frames a second, one every 200 milliseconds.
    assert meta["fps"] == 5 if "fps" in meta else meta["duration"] == 200


def test_other_formats_are_refused(tmp_path):
    with pytest.raises(ValueError, match="in .mp4 or .gif.*'video.avi'"):
        Video("video.avi", make_scripted(1, env=Painted))


def warned(envs, path, episodes=2):
    """Records what cannot be recorded; returns the one warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert len(record(envs, path, episodes)) == episodes
    (warning,) = caught
    return str(warning.message)


def test_without_a_renderer(tmp_path):
    text = warned(make_scripted(2), tmp_path / "video.gif")
    assert "goes on" in text and 'render_mode="rgb_array"' in text


def test_without_a_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio.v2", None)
    envs = make_scripted(2, env=Painted)
    text = warned(envs, tmp_path / "video.gif")
    assert 'pip install "keras-dreamer[video]"' in text


def test_when_rendering_fails(tmp_path):
    pytest.importorskip("imageio")
    envs = make_scripted(1, env=Broken, lengths=(5,))
    text = warned(envs, tmp_path / "video.gif")
    assert "the display is gone" in text


def test_when_nothing_is_rendered(tmp_path):
    text = warned(make_scripted(1, env=Blind), tmp_path / "video.gif")
    assert "rendered None" in text


def test_when_the_file_cannot_be_written(tmp_path):
    pytest.importorskip("imageio")
    (tmp_path / "file").touch()
    envs = make_scripted(1, env=Painted)
    assert "file" in warned(envs, tmp_path / "file" / "video.gif")


def test_environments_in_processes(tmp_path):
    imageio = pytest.importorskip("imageio.v3")
    envs = kd.envs.make(Painted, 2, mode="process")
    try:
        record(envs, tmp_path / "video.gif")
    finally:
        envs.close()
    assert imageio.imread(tmp_path / "video.gif").shape[1:] == (32, 48, 3)


def test_dm_control_without_opengl(tmp_path, monkeypatch):
    pytest.importorskip("dm_control")
    envs = kd.envs.make(
        "dmc:cartpole_balance",
        render_mode="rgb_array",
        task_kwargs={"time_limit": 0.05},
    )
    inner = envs.unwrapped.envs[0].unwrapped
    physics = type(inner._env.physics)
    monkeypatch.setattr(physics, "contexts", None)
    text = warned(envs, tmp_path / "video.gif", episodes=1)
    assert "nothing can render here: MUJOCO_GL" in text
