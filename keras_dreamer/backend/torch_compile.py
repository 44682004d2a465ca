"""PyTorch: loops with compiled bodies."""

import contextlib
import contextvars
import warnings

import torch

# The compiler of the running update.
_active = contextvars.ContextVar("compiler", default=None)


def body_of(loop):
    """Returns the body of a loop, compiled if the running update wants it."""
    compiler = _active.get()
    return compiler.compile(loop) if compiler else loop


class BodyCompiler:
    """Compiles the bodies of loops with `torch.compile`, if that works here.

    The update as a whole would be compiled with its loops unrolled: ten
    minutes in place of one.
    """

    def __init__(self):
        self.works = True

    @contextlib.contextmanager
    def active(self):
        """Makes loops ask this compiler."""
        token = _active.set(self)
        try:
            yield
        finally:
            _active.reset(token)

    def compile(self, body):
        """Returns `body`, compiled from its second call on.

        The first call is different, since its inputs have no gradients yet:
        it would be compiled for itself.
        """
        compiled = None
        calls = 0

        def run(*args):
            nonlocal compiled, calls
            calls += 1
            if calls == 1 or not self.works:
                return body(*args)
            try:
                compiled = compiled or torch.compile(body, dynamic=False)
                return compiled(*args)
            except Exception as error:
                result = body(*args)  # Raises again what is its own fault.
                self._give_up(error)
                return result

        return run

    def _give_up(self, error):
        self.works = False
        reason = str(error).strip().splitlines() or [type(error).__name__]
        warnings.warn(
            "`jit_compile=True` needs a `torch.compile` that works, with a C++ "
            f"compiler on CPUs and Triton on GPUs. Received: {reason[0]} The "
            "model trains without it. Leave `jit_compile` out to train so "
            "from the start.",
            stacklevel=2,
        )
