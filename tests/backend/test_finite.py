import numpy as np
import pytest
from keras import ops

from keras_dreamer.backend.finite import measure

GOOD = [[1.0, -2.0], [[3.0]]]


def run(total, gradients, parts=()):
    tensors = [
        None if g is None else ops.convert_to_tensor(np.float32(g))
        for g in gradients
    ]
    return measure(ops.convert_to_tensor(np.float32(total)), tensors, parts)


def finite(total, gradients):
    return bool(run(total, gradients)[0])


def test_norms_of_all_gradients_and_of_parts():
    gradients = [[2.0, -1.0], None, [[4.0]], [2.0]]
    parts = (("a", (0, 1, 2)), ("b", (3,)), ("c", (1,)), ("d", ()))
    _, norms = run(1.0, gradients, parts)
    found = {name: float(norm) for name, norm in norms.items()}
    # 4 + 1 + 16 + 4 = 25, and 4 + 1 + 16 = 21.
    expected = {"": 5, "/a": 21**0.5, "/b": 2, "/c": 0, "/d": 0}
    assert found == pytest.approx(
        {f"grad_norm{name}": norm for name, norm in expected.items()}
    )


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
