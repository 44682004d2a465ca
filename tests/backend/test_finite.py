import numpy as np
import pytest
from keras import ops

from keras_dreamer.backend.finite import all_finite

GOOD = [[1.0, -2.0], [[3.0]]]


def finite(total, gradients):
    tensors = [
        None if g is None else ops.convert_to_tensor(np.float32(g))
        for g in gradients
    ]
    return bool(all_finite(ops.convert_to_tensor(np.float32(total)), tensors))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_bad_number_is_enough(bad):
    assert finite(1.0, GOOD)
    assert not finite(bad, GOOD)
    assert not finite(1.0, [[1.0, bad], [[3.0]]])
    assert not finite(1.0, [[1.0, -2.0], [[bad]]])


def test_weights_without_a_gradient_do_not_matter():
    assert finite(1.0, [None, *GOOD])
    assert not finite(1.0, [None, [np.inf]])


def test_norms_must_not_overflow():
    assert finite(1.0, [[1e18]])
    assert not finite(1.0, [[1e20]])  # Its square is no float32.
