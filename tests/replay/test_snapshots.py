import json

import numpy as np
import pytest
from helpers import damage

from keras_dreamer.replay.files import DamagedFile
from keras_dreamer.replay.pool import CHANGED
from keras_dreamer.replay.pool import UNUSED


class Saves:
    """Saves a replay into numbered directories."""

    def __init__(self, replay, path):
        self.replay = replay
        self.path = path
        self.count = 0
        self.newest = None

    def __call__(self):
        """Returns the numbers of rows in the files that are not links."""
        self.count += 1
        directory = self.path / str(self.count)
        directory.mkdir(parents=True)
        self.replay.save_changes(directory, self.newest)
        self.newest = directory
        return [rows_of(p) for p in row_files(directory) if links(p) == 1]


def row_files(directory):
    return sorted(directory.glob("rows-*.npz"))


def links(path):
    return path.stat().st_nlink


def rows_of(path):
    with np.load(path, allow_pickle=False) as file:
        return len(file["step_id"])


def content(replay):
    """Returns everything that a replay holds, row by row."""
    pool, items = replay._pool, replay._items
    row = np.flatnonzero(pool.files != UNUSED)
    ids = pool.ids(row)
    row = row[np.argsort(ids)]
    return {
        **{name: x[row].astype("float32") for name, x in pool.arrays.items()},
        "ids": np.sort(ids),
        "rows": items.rows,
        "evicted": items.evicted,
        "order": np.asarray(items.order),
        "queue": np.array(items.queue),
        "next": replay._rng.bit_generator.state["state"]["state"] % 2**60,
    }


def assert_same(replay, other):
    expected, actual = content(replay), content(other)
    for name, value in expected.items():
        np.testing.assert_array_equal(actual[name], value, err_msg=name)


def update(small, replay, step_id, number):
    """Gives rows the latents that belong to `number`."""
    step_id = np.asarray(step_id)
    replay.update(step_id, small.latents(np.full(step_id.shape, number)))


@pytest.mark.parametrize("directory", [None, "mapped"])
@pytest.mark.parametrize("capacity", [25, 1000])
def test_whatever_happens_between_saves_is_loaded(
    small, tmp_path, capacity, directory
):
    mapped = directory and tmp_path / directory
    replay = small.replay(3, capacity, directory=mapped)
    save = Saves(replay, tmp_path / "saves")
    rng = np.random.default_rng(capacity)
    save()
    for step in range(40):
        streams = rng.integers(3, size=rng.integers(9))
        number = replay._items.rows[streams] + 1000 * streams
        replay.add_batch(small.steps(number), streams)
        if len(replay):
            batch = replay.sample(2)
            update(small, replay, batch["step_id"][:, 1:], step)
        if rng.integers(2):
            save()
            other = small.replay(3, capacity, seed=9, directory=mapped)
            other.load(save.newest)
            assert_same(replay, other)
        if step == 20:  # Goes on in another process.
            replay = save.replay = other
    assert save.count > 10


def test_only_new_and_updated_rows_are_written(small, tmp_path):
    replay = small.replay(2)
    small.fill(replay, 100)
    save = Saves(replay, tmp_path)
    assert save() == [200]
    assert save() == []  # Nothing is new.
    small.fill(replay, 5)
    assert save() == [10]
    # Rows 7 and 9 of stream 0, one of them twice, and row 104 of stream 1.
    update(small, replay, [[7, 9], [9, (1 << 40) + 104]], 77)
    assert save() == [3]
    assert len(row_files(save.newest)) == 3
    other = small.replay(2)
    other.load(save.newest)
    assert_same(replay, other)
    # The loaded one goes on with the same files.
    again = Saves(other, tmp_path / "again")
    again.newest = save.newest
    small.fill(other, 1)
    assert again() == [2]


def test_a_file_goes_when_most_of_its_rows_have_changed(small, tmp_path):
    replay = small.replay(1)
    small.fill(replay, 100)
    save = Saves(replay, tmp_path)
    save()
    update(small, replay, np.arange(50)[None], 1)
    assert save() == [50]  # Half of the first file still counts.
    assert [rows_of(p) for p in row_files(save.newest)] == [100, 50]
    update(small, replay, [[60, 61]], 2)
    assert save() == [50]  # Its last 48 rows, too.
    assert [rows_of(p) for p in row_files(save.newest)] == [50, 50]
    other = small.replay(1)
    other.load(save.newest)
    assert_same(replay, other)


def test_space_and_cost_are_bounded(small, tmp_path):
    # Every save must cost at most twice what changed, on the average, and
    # take at most twice the rows that are held.
    replay = small.replay(2, capacity=150)
    save = Saves(replay, tmp_path)
    rng = np.random.default_rng(0)
    changed = written = 0
    for _ in range(60):
        count = int(rng.integers(6))
        small.fill(replay, count)
        if len(replay):
            ids = replay.sample(int(rng.integers(1, 4)))["step_id"][:, 1:]
            update(small, replay, ids, 0)
        changed += np.count_nonzero(replay._pool.files == CHANGED)
        written += sum(save())
        held = np.count_nonzero(replay._pool.files != UNUSED)
        assert sum(map(rows_of, row_files(save.newest))) <= 2 * held
    assert changed <= written <= 2 * changed
    assert held < 170


def test_a_save_that_was_given_up_counts_for_nothing(small, tmp_path):
    replay = small.replay(1)
    small.fill(replay, 20)
    save = Saves(replay, tmp_path)
    save()
    before = save.newest
    small.fill(replay, 5)
    assert save() == [5]
    save.newest = before  # As if the disk had been full.
    assert save() == [5]
    save.newest = None  # As if someone had removed the directories.
    assert save() == [25]
    other = small.replay(1)
    other.load(save.newest)
    assert_same(replay, other)


def test_files_are_copied_where_the_system_has_no_links(
    small, tmp_path, monkeypatch
):
    replay = small.replay(1)
    small.fill(replay, 20)
    save = Saves(replay, tmp_path)
    save()

    def refuse(*args):
        raise OSError("Operation not permitted")

    monkeypatch.setattr("os.link", refuse)
    save()
    assert [links(path) for path in row_files(save.newest)] == [1]
    other = small.replay(1)
    other.load(save.newest)
    assert_same(replay, other)


@pytest.mark.parametrize(
    "saved, loaded", [("float32", "bfloat16"), ("bfloat16", "float32")]
)
def test_deter_is_cast_and_goes_on_in_the_new_dtype(
    small, tmp_path, saved, loaded
):
    replay = small.replay(1, dtype=saved)
    small.fill(replay, 40)
    save = Saves(replay, tmp_path)
    save()
    other = small.replay(1, dtype=loaded)
    other.load(save.newest)
    assert_same(replay, other)  # Numbers that both can hold.
    small.fill(other, 3)
    save.replay = other
    assert save() == [3]  # A directory with both dtypes.
    third = small.replay(1, dtype=saved)
    third.load(save.newest)
    assert_same(other, third)


def test_a_smaller_capacity_keeps_the_newest_items(small, tmp_path):
    replay = small.replay(1)
    small.fill(replay, 50)
    save = Saves(replay, tmp_path)
    save()
    other = small.replay(1, capacity=10, online=False)
    other.load(save.newest)
    assert len(other) == 10 and other.queued == 0
    assert set(small.numbers(other.sample(300))[:, 0]) == set(range(36, 46))


def test_another_kind_of_replay_is_refused(small, tmp_path):
    save = Saves(small.replay(2), tmp_path)
    save()
    other = small.replay(3, deter=4)
    with pytest.raises(ValueError, match="context/deter.*num_envs: 3 here, 2"):
        other.load(save.newest)


@pytest.mark.parametrize("index", [0, 1, "replay.npz"])
@pytest.mark.parametrize("how", ["cut", "change", "remove"])
def test_damage_is_named_and_changes_nothing(small, tmp_path, index, how):
    replay = small.replay(2)
    small.fill(replay, 20)
    save = Saves(replay, tmp_path)
    save()
    small.fill(replay, 20)
    save()
    path = save.newest / str(index)
    if index != "replay.npz":
        path = row_files(save.newest)[index]
    damage(path, how)
    other = small.replay(2)
    small.fill(other, 9)
    with pytest.raises((DamagedFile, FileNotFoundError), match=path.name):
        other.load(save.newest)
    assert len(other) == 10
    small.numbers(other.sample(10))


def test_rows_without_a_file_are_noticed(small, tmp_path):
    replay = small.replay(1)
    small.fill(replay, 20)
    save = Saves(replay, tmp_path)
    save()
    small.fill(replay, 5)
    save()
    first, second = row_files(save.newest)
    second.write_bytes(first.read_bytes())
    with pytest.raises(DamagedFile, match="5 rows are in none of its files"):
        small.replay(1).load(save.newest)


def test_files_of_other_folders_are_not_read(small, tmp_path):
    replay = small.replay(1)
    small.fill(replay, 20)
    save = Saves(replay, tmp_path)
    save()
    index = save.newest / "replay.npz"
    with np.load(index) as file:
        arrays = dict(file)
    meta = json.loads(str(arrays["meta"]))
    meta["files"] = [f"../1/{name}" for name in meta["files"]]
    np.savez(index, **{**arrays, "meta": np.array(json.dumps(meta))})
    with pytest.raises(DamagedFile, match="replay.npz.*lies elsewhere"):
        small.replay(1).load(save.newest)
