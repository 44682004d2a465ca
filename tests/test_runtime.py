import os
import subprocess
import sys

import pytest

from keras_dreamer import backend
from keras_dreamer import runtime

# Runs in a process of its own: the settings stay.
CONFIGURED = """
import resource, sys
import numpy as np
import keras_dreamer
from keras_dreamer import runtime
keras_dreamer.configure_runtime(sys.argv[1])
runtime._keep_freed_memory()
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.ones(2**26, "uint8")
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults()
print(faults())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's malloc")
def test_memory_is_not_asked_for_again(tmp_path):
    # 64 MiB are 16384 pages, which are at hand the second time.
    result = subprocess.run(
        [sys.executable, "-c", CONFIGURED, str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        check=True,
    )
    assert int(result.stdout) < 100


def test_the_folder_reaches_the_backend(monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(backend, "configure", seen.append)
    monkeypatch.setenv("HOME", str(tmp_path))
    runtime.configure_runtime("~/programs")
    runtime.configure_runtime(None)
    assert seen == [str(tmp_path / "programs"), None]
