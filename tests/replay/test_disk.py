import errno
import gc
import os
import shutil
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

from keras_dreamer.replay.disk import HeapArrays
from keras_dreamer.replay.disk import MappedArrays

FIELDS = {
    "observation/x": ((2, 3), np.dtype("float32")),
    "flag": ((), np.dtype(bool)),
    "deter": ((4,), np.dtype(ml_dtypes.bfloat16)),
}


def sizes(memory):
    return {p.name: p.stat().st_size for p in memory.folder.glob("*.rows")}


def test_mapped_arrays_are_like_those_in_memory(tmp_path):
    memories = HeapArrays(FIELDS), MappedArrays(FIELDS, tmp_path)
    rng = np.random.default_rng(0)
    for rows in (0, 3, 5, 40):
        noise = rng.uniform(-9, 9, (rows, 4))
        for memory in memories:
            before = {k: v.copy() for k, v in memory.arrays.items()}
            if rows:
                memory.resize(rows)
            for name, (shape, dtype) in FIELDS.items():
                array = memory.arrays[name]
                assert type(array) is np.ndarray
                assert (array.shape, array.dtype) == ((rows, *shape), dtype)
                kept = len(before[name])
                np.testing.assert_array_equal(array[:kept], before[name])
                assert not array[kept:].astype("float32").any()
            memory.arrays["deter"][:] = noise
            memory.arrays["observation/x"][:] = rows
            memory.arrays["flag"][-1:] = True


def test_growing_with_a_view_copies():
    # As after an error, whose traceback holds the arrays of its frames.
    memory = HeapArrays(FIELDS)
    memory.resize(3)
    memory.arrays["deter"][:] = [[1], [2], [3]]
    view = memory.arrays["deter"]
    memory.resize(5)
    memory.arrays["deter"][0] = 7
    assert view[:, 0].tolist() == [1, 2, 3]
    assert memory.arrays["deter"][:, 0].tolist() == [7, 2, 3, 0, 0]


def test_memory_that_does_not_suffice():
    memory = HeapArrays(FIELDS)
    memory.resize(3)
    memory.arrays["deter"][:] = 1
    with pytest.raises(MemoryError, match=r"must fit.*`directory`"):
        memory.resize(2**46)
    for name, array in memory.arrays.items():
        assert array.shape == (3, *FIELDS[name][0])
    assert memory.arrays["deter"].sum() == 12


GROW = """
import keras_dreamer as kd
import numpy as np
from keras_dreamer.replay.disk import HeapArrays

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

kd.configure_runtime(cache=None)
before = resident()
fields = {"a": ((1000,), np.dtype("float32")), "b": ((9,), np.dtype("int8"))}
memory, old, rows = HeapArrays(fields), 0, 100
while rows < 20_000:
    memory.resize(rows)
    for array in memory.arrays.values():
        array[old:] = 1
    old, rows = rows, rows + rows // 32 + 1
print((resident() - before) / sum(a.nbytes for a in memory.arrays.values()))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="It reads /proc.")
def test_no_gaps_are_left_behind_where_freed_memory_is_kept():
    done = subprocess.run(
        [sys.executable, "-c", GROW], capture_output=True, text=True, check=True
    )
    assert 0.95 < float(done.stdout) < 1.05


def test_files_hold_the_rows_and_nothing_more(tmp_path):
    memory = MappedArrays(FIELDS, tmp_path / "new" / "folder")
    memory.resize(10)
    memory.arrays["observation/x"][3] = 7.0
    assert sizes(memory) == {
        "observation.x.rows": 10 * 6 * 4,
        "flag.rows": 10,
        "deter.rows": 10 * 4 * 2,
    }
    stored = np.fromfile(memory.folder / "observation.x.rows", "float32")
    assert stored.reshape(10, 2, 3)[3].tolist() == [[7.0] * 3] * 2


def test_the_folder_goes_with_the_arrays(tmp_path):
    memory = MappedArrays(FIELDS, tmp_path)
    memory.resize(10)
    other = MappedArrays(FIELDS, tmp_path)
    assert memory.folder.exists() and other.folder.exists()
    del memory
    gc.collect()
    assert list(tmp_path.iterdir()) == [other.folder]


def test_what_a_killed_process_left_is_removed(tmp_path):
    code = (
        "import os, signal, sys, numpy as np\n"
        "from keras_dreamer.replay.disk import MappedArrays\n"
        "memory = MappedArrays({'x': ((), np.dtype('int8'))}, sys.argv[1])\n"
        "memory.resize(100)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path])  # noqa: S603
    (left,) = tmp_path.iterdir()
    assert (left / "x.rows").stat().st_size == 100
    (tmp_path / "replay-notes").mkdir()  # Nothing of ours.
    memory = MappedArrays(FIELDS, tmp_path)
    assert not left.exists()
    assert {p.name for p in tmp_path.iterdir()} == {
        "replay-notes",
        memory.folder.name,
    }


def test_removal_that_is_killed_is_gone_on_with(tmp_path, monkeypatch):
    memory = MappedArrays(FIELDS, tmp_path)
    memory.resize(4)
    folder = memory.folder
    with monkeypatch.context() as patch:  # Killed before the last step.
        patch.setattr(shutil, "rmtree", lambda *args, **kwargs: None)
        del memory
        gc.collect()
    # The large files went first, the lock is still there.
    assert [path.name for path in folder.iterdir()] == ["lock"]
    memory = MappedArrays(FIELDS, tmp_path)
    assert not folder.exists() and memory.folder.exists()


@pytest.mark.skipif(
    not hasattr(os, "posix_fallocate"), reason="reserves with holes"
)
def test_a_full_disk_is_an_error_and_not_the_end(tmp_path, monkeypatch):
    memory = MappedArrays(FIELDS, tmp_path)
    memory.resize(4)
    memory.arrays["deter"][:] = 3.0

    def full(file, offset, length):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="must have room.*192 bytes.*Free sp"):
        memory.resize(8)
    assert (memory.arrays["deter"].astype("float32") == 3).all()
