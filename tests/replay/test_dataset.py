import itertools

import keras
import numpy as np
import pytest

from keras_dreamer.replay import ReplayDataset


def test_defaults_come_from_the_replay(small):
    dataset = ReplayDataset(small.replay(batch_size=3))
    assert (dataset.batch_size, dataset.batch_length) == (3, 4)
    assert dataset.num_batches is None
    assert isinstance(dataset, keras.utils.PyDataset)


def test_gives_tickets_and_draws_batches(small):
    replay = small.replay(1)
    dataset = ReplayDataset(replay, batch_size=2, batch_length=4)
    (ticket,) = dataset[0]  # Before the replay holds anything.
    np.testing.assert_array_equal(ticket, np.zeros(2, "int32"))
    small.fill(replay, 6)
    assert small.numbers(dataset.draw())[0].tolist() == [1, 2, 3, 4, 5]
    assert dataset.draw()["reward"].shape == (2, 5)


def test_is_as_long_as_it_is_told(small):
    dataset = ReplayDataset(small.replay(), steps_per_epoch=7)
    assert len(list(dataset)) == 7
    endless = ReplayDataset(small.replay())
    assert len(list(itertools.islice(endless, 20))) == 20


def test_a_subclass_serves_its_own_batches():
    class Fixed(ReplayDataset):
        def draw(self):
            return {"reward": np.zeros((self.batch_size, 9))}

    dataset = Fixed(None)
    assert (dataset.batch_size, dataset.batch_length) == (16, 64)
    assert Fixed(None, batch_size=3).draw()["reward"].shape == (3, 9)


def test_refuses_another_length_than_the_replays(small):
    message = r"batch_length=64, and .* batch_length=4\. Leave it out"
    with pytest.raises(ValueError, match=message):
        ReplayDataset(small.replay(), batch_length=64)


def test_refuses_a_batch_beyond_the_capacity(small):
    ReplayDataset(small.replay(capacity=50), batch_size=10)
    message = r"= 55\. Received: capacity=50, batch_size=11\. Raise"
    with pytest.raises(ValueError, match=message):
        ReplayDataset(small.replay(capacity=50), batch_size=11)
