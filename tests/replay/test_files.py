import pathlib
import zipfile

import ml_dtypes
import numpy as np
import pytest

from keras_dreamer.replay import files


def write(path, array, row):
    with zipfile.ZipFile(path, "w") as file:
        files.write_array(file, "names", np.array(["a", "bc"]))
        files.write_rows(file, "row/x", array, row)


@pytest.mark.parametrize("dtype", ["float32", "bool", "bfloat16"])
def test_rows_come_back_where_they_belong(tmp_path, dtype):
    dtype = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    array = np.random.default_rng(0).uniform(0, 2, (9000, 2)).astype(dtype)
    row = np.random.default_rng(1).permutation(9000)[:8500]
    path = tmp_path / "x.npz"
    write(path, array, row)
    found = np.zeros_like(array)
    place = np.where(row % 7 == 0, -1, row)  # Some are not wanted.
    with files.open_npz(path) as file:
        assert files.read_array(file, "names").tolist() == ["a", "bc"]
        files.read_rows(file, "row/x", found, place, dtype)
    expected = np.zeros_like(array)
    kept = place[place >= 0]
    expected[kept] = array[kept]
    np.testing.assert_array_equal(
        found.view(f"u{dtype.itemsize}"), expected.view(f"u{dtype.itemsize}")
    )


def test_numpy_reads_the_file(tmp_path):
    array = np.arange(12.0).reshape(6, 2)
    write(tmp_path / "x.npz", array, np.array([4, 1]))
    with np.load(tmp_path / "x.npz", allow_pickle=False) as file:
        assert file["row/x"].tolist() == [[8, 9], [2, 3]]


def test_values_are_cast(tmp_path):
    write(tmp_path / "x.npz", np.full((3, 1), 1.005), np.arange(3))
    found = np.zeros((3, 1), ml_dtypes.bfloat16)
    with files.open_npz(tmp_path / "x.npz") as file:
        files.read_rows(file, "row/x", found, np.arange(3), np.dtype("float64"))
    assert found.astype("float32").tolist() == [[1.0078125]] * 3  # 1 + 2**-7


def read_all(path, row=None):
    found = np.zeros((50, 2))
    row = np.arange(50) if row is None else row
    with files.open_npz(path) as file:
        files.read_array(file, "names")
        files.read_rows(file, "row/x", found, row, np.dtype("float64"))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_file_that_was_cut_off_is_named(tmp_path, share):
    path = tmp_path / "x.npz"
    write(path, np.ones((50, 2)), np.arange(50))
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(files.DamagedFile, match=r"x\.npz', which is not"):
        read_all(path)


@pytest.mark.parametrize("share", [0.02, 0.5, 0.7])
def test_a_changed_byte_is_noticed(tmp_path, share):
    path = tmp_path / "x.npz"
    write(path, np.ones((50, 2)), np.arange(50))
    content = bytearray(path.read_bytes())
    content[int(share * len(content))] ^= 4
    path.write_bytes(content)
    with pytest.raises(files.DamagedFile, match="x.npz.*another copy"):
        read_all(path)


def test_another_number_of_rows_is_refused(tmp_path):
    path = tmp_path / "x.npz"
    write(path, np.ones((50, 2)), np.arange(50))
    with pytest.raises(files.DamagedFile, match=r"row/x has the shape \(50, 2"):
        read_all(path, np.arange(49))


def test_no_code_is_loaded(tmp_path):
    path = tmp_path / "x.npz"
    harmful = np.array([pathlib.Path("x")], object)
    np.savez(path, names=harmful, allow_pickle=True)
    with pytest.raises(files.DamagedFile, match="allow_pickle=False"):
        read_all(path)


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_all(tmp_path / "x.npz")


def test_parts_cover_all_rows():
    assert files.parts(0) == []
    row = np.arange(10_000)
    covered = np.concatenate([row[part] for part in files.parts(10_000)])
    np.testing.assert_array_equal(covered, row)
