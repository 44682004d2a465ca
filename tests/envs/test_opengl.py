import pytest

from keras_dreamer.envs.opengl import tolerate_missing_opengl


@pytest.mark.parametrize("kind", ["RuntimeError", "FatalError"])
def test_contexts_are_none_where_nothing_renders(kind):
    mujoco = pytest.importorskip("mujoco")
    error = {"RuntimeError": RuntimeError, "FatalError": mujoco.FatalError}

    class Physics:
        @property
        def contexts(self):
            raise error[kind]("no OpenGL")

    physics = Physics()
    tolerate_missing_opengl(physics)
    assert physics.contexts is None
