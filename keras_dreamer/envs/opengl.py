"""Machines without OpenGL."""


def tolerate_missing_opengl(physics):
    """Makes `physics.contexts` None where OpenGL is missing.

    Resets of quadruped_escape ask whether there is a rendering context, and
    asking creates one, which raises where nothing can render.
    """
    import mujoco

    kind = type(physics)

    class Physics(kind):
        @property
        def contexts(self):
            try:
                return super().contexts
            except (RuntimeError, mujoco.FatalError):
                return None

    physics.__class__ = Physics
