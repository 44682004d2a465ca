import pytest

from keras_dreamer.callbacks.resumable import Resumable


def test_the_state_must_be_defined():
    with pytest.raises(NotImplementedError):
        Resumable().get_state()
    with pytest.raises(NotImplementedError):
        Resumable().set_state({})
