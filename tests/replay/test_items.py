import numpy as np

from keras_dreamer.replay.items import Fifo
from keras_dreamer.replay.items import Items
from keras_dreamer.replay.pool import split_ids


def append(items, streams):
    step_id = items.next_ids(np.asarray(streams, np.int64))
    items.append(step_id)
    stream, position = split_ids(step_id)
    return list(zip(stream.tolist(), position.tolist(), strict=True))


def drawn(items, count=500):
    step_id = items.draw(count, np.random.default_rng(0))
    stream, position = split_ids(step_id)
    return sorted(set(zip(stream.tolist(), position.tolist(), strict=True)))


def test_row_n_inserts_the_window_that_ends_there():
    items = Items(streams=2, length=3, capacity=100, online=True)
    assert append(items, [0, 1, 1, 0]) == [(0, 0), (1, 0), (1, 1), (0, 1)]
    assert len(items) == 0
    append(items, [1])
    assert drawn(items) == [(1, 0)]
    append(items, [0, 1])
    assert drawn(items) == [(0, 0), (1, 0), (1, 1)]


def test_the_oldest_item_of_all_streams_goes_first():
    items = Items(streams=3, length=2, capacity=3, online=True)
    append(items, [0, 1, 0, 1, 1, 1])  # Items (0, 0) (1, 0) (1, 1) (1, 2).
    assert drawn(items) == [(1, 0), (1, 1), (1, 2)]
    assert items.evicted.tolist() == [1, 0, 0]
    append(items, [0])
    assert drawn(items) == [(0, 1), (1, 1), (1, 2)]


def test_queue_gets_windows_without_overlap():
    # Rows 3, 6 and 9 insert the items that start at 1, 4 and 7.
    items = Items(streams=1, length=3, capacity=100, online=True)
    append(items, [0] * 10)
    assert list(items.queue) == [1, 4, 7]


def test_windows_of_one_row():
    items = Items(streams=1, length=1, capacity=2, online=True)
    append(items, [0] * 4)
    assert drawn(items) == [(0, 2), (0, 3)]
    assert list(items.queue) == [1, 2, 3]


def test_draws_are_uniform_over_items_not_streams():
    items = Items(streams=2, length=2, capacity=100, online=True)
    append(items, [0] * 2 + [1] * 10)  # 1 item and 9 items.
    stream, _ = split_ids(items.draw(20_000, np.random.default_rng(0)))
    # The standard deviation of the mean is sqrt(0.1 * 0.9 / 20000) = 0.002.
    assert abs((stream == 0).mean() - 0.1) < 0.01


def test_fifo_keeps_its_order_while_it_moves():
    fifo = Fifo(np.uint8)
    expected = []
    for count in range(60):
        fifo.push(np.arange(count))
        expected += range(count)
        if count % 3 == 0:
            assert fifo.pop(count // 2).tolist() == expected[: count // 2]
            expected = expected[count // 2 :]
        assert len(fifo) == len(expected)
    np.testing.assert_array_equal(np.asarray(fifo), expected)
