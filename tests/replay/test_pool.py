import numpy as np

from keras_dreamer.replay.pool import Pool
from keras_dreamer.replay.pool import split_ids
from keras_dreamer.replay.pool import step_ids

FIELDS = {"x": ((3,), np.dtype("float32")), "flag": ((), np.dtype(bool))}


def ids(stream, positions):
    return step_ids(stream, np.asarray(positions, np.int64))


def test_ids_encode_stream_and_position():
    assert ids(2, [5]).tolist() == [2 * 2**40 + 5]
    stream, position = split_ids(ids([0, 7], [3, 2**40 - 1]))
    assert stream.tolist() == [0, 7]
    assert position.tolist() == [3, 2**40 - 1]


def test_rows_of_a_page_are_neighbours_and_streams_do_not_mix():
    pool = Pool(FIELDS, streams=2, page=4)
    first = pool.claim(ids(0, range(6)))
    second = pool.claim(ids(1, range(3)))
    assert first.tolist() == [0, 1, 2, 3, 4, 5]
    assert second.tolist() == [8, 9, 10]
    np.testing.assert_array_equal(pool.locate(ids(0, range(6))), first)


def test_nbytes_counts_pages_in_use():
    pool = Pool(FIELDS, streams=1, page=4)
    assert pool.row_nbytes == 3 * 4 + 1
    pool.claim(ids(0, range(5)))  # 2 pages of 4 rows.
    assert pool.nbytes == 2 * 4 * 13
    pool.release(np.array([4]))
    assert pool.nbytes == 4 * 13


def test_released_pages_are_not_found_and_used_again():
    pool = Pool(FIELDS, streams=2, page=4)
    old = pool.claim(ids(0, range(8)))
    pool.release(np.array([7, 0]))  # Row 7 keeps the second page.
    assert pool.locate(ids(0, range(8))).tolist() == [-1] * 4 + [4, 5, 6, 7]
    assert pool.claim(ids(1, range(4))).tolist() == old[:4].tolist()


def test_unknown_ids_are_not_held():
    pool = Pool(FIELDS, streams=2, page=4)
    pool.claim(ids(1, range(4)))
    unknown = np.array([-1, -(1 << 40), 0, 2 << 40, ids(1, [10**6])[0]])
    assert pool.locate(unknown).tolist() == [-1] * 5
    assert pool.locate(ids(1, [[3]])).shape == (1, 1)


def test_growing_keeps_the_content_and_wastes_little():
    pool = Pool(FIELDS, streams=1, page=4)
    for t in range(4000):
        row = pool.claim(ids(0, [t]))
        pool.arrays["x"][row] = t
    row = pool.locate(ids(0, range(4000)))
    np.testing.assert_array_equal(pool.arrays["x"][row, 2], np.arange(4000))
    assert len(pool.arrays["x"]) <= 1.05 * 4000


def test_claiming_again_after_a_failed_write_takes_the_same_rows():
    pool = Pool(FIELDS, streams=1, page=4)
    row = pool.claim(ids(0, range(6)))
    np.testing.assert_array_equal(pool.claim(ids(0, range(6))), row)
    assert pool.nbytes == 2 * 4 * 13
