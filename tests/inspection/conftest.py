"""Small agents spend their time in compilers."""

import agents
import keras
import pytest


@pytest.fixture(scope="module")
def quick_backend():
    with agents.quick_backend():
        if keras.backend.backend() != "tensorflow":
            yield
            return
        import tensorflow as tf

        # The compiled functions run in tests/cli/plots/test_recording.py.
        tf.config.run_functions_eagerly(True)
        yield
        tf.config.run_functions_eagerly(False)
