"""Videos of episodes."""

import contextlib
import pathlib
import warnings

import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector import SyncVectorEnv

from keras_dreamer.envs.environments import Environments
from keras_dreamer.optional import optional

_FRAMES_PER_SECOND = 30  # Of environments that do not say it.


class Video:
    """Records the first episode of the first environment.

    What is missing for it, a renderer or a package, is said in a warning, and
    the episode goes on without.

    Args:
        path: path of the video, ending in ".mp4" (needs the package imageio
            with its ffmpeg plugin) or ".gif" (needs imageio).
        envs: `gymnasium.vector.VectorEnv` with the `render_mode` "rgb_array".
    """

    def __init__(self, path, envs):
        self.path = pathlib.Path(path)
        if self.path.suffix not in (".mp4", ".gif"):
            raise ValueError(
                "`record` must be the path of a video that ends in .mp4 or "
                f".gif. Received: {str(path)!r}. Use for example 'video.mp4'."
            )
        self._envs = envs
        self._writer = None
        self._done = False

    def watch(self, rows):
        """Takes a frame, if the episode still runs. For `play`.

        Args:
            rows: `Rows` of the environments.

        Returns:
            False: a video never ends an episode.
        """
        if self._done or not rows.active[0]:
            return False
        if not rows.is_last[0]:
            self._guard(self._add)
            return False
        # The other modes have reset the environment already.
        mode = self._envs.metadata.get("autoreset_mode")
        if AutoresetMode(mode) is AutoresetMode.NEXT_STEP:
            self._guard(self._add)
        self.close()
        return False

    def close(self):
        """Completes the file."""
        self._done = True
        if self._writer is not None:
            self._guard(self._writer.close)
            self._writer = None

    def _guard(self, function):
        try:
            function()
        except Exception as error:  # Drivers and codecs raise all kinds.
            warnings.warn(
                f"There will be no complete video {self.path}; evaluation "
                f"goes on. The reason: {error}",
                stacklevel=2,
            )
            writer, self._writer, self._done = self._writer, None, True
            if writer is not None:
                with contextlib.suppress(Exception):
                    writer.close()

    def _add(self):
        frame = self._frame()
        if self._writer is None:
            self._writer = self._open()
        # Codecs need even sizes.
        height, width = (size // 2 * 2 for size in frame.shape[:2])
        self._writer.append_data(frame[:height, :width])

    def _frame(self):
        if self._envs.render_mode != "rgb_array":
            raise RuntimeError(
                "the environments were made without a renderer. Make them with "
                'kd.envs.make(..., render_mode="rgb_array") if they have one.'
            )
        inner = self._envs.unwrapped
        if isinstance(inner, SyncVectorEnv):
            frame = inner.envs[0].render()  # The others need not render.
        else:
            frame = self._envs.render()[0]
        if not isinstance(frame, np.ndarray):
            raise RuntimeError(f"the environment rendered {frame!r}.")
        return frame

    def _open(self):
        imageio = optional("imageio.v2", "video")
        rate = self._envs.metadata.get("render_fps") or _FRAMES_PER_SECOND
        if isinstance(self._envs, Environments):
            rate /= self._envs.action_repeat
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.suffix == ".gif":
            return imageio.get_writer(self.path, duration=1000 / rate, loop=0)
        optional("imageio_ffmpeg", "video")
        return imageio.get_writer(self.path, fps=rate, macro_block_size=2)
