import json

import keras
import numpy as np
import pytest
from helpers import to_numpy

from keras_dreamer.layers import FanInTruncatedNormal
from keras_dreamer.layers.initializers import spread_seeds


def draw(shape, scale=1.0, seed=0):
    return to_numpy(FanInTruncatedNormal(scale, seed)(shape))


@pytest.mark.parametrize(
    "shape, std",
    [
        ((400, 50), 0.05),  # 1 / sqrt(400)
        # A block kernel counts the WHOLE input: 1 / sqrt(8 * 50) = 0.05,
        # not 1 / sqrt(50) = 0.141.
        ((8, 50, 50), 0.05),
        ((4, 4, 25, 50), 0.05),  # 1 / sqrt(4 * 4 * 25)
        ((20_000,), 1.0),  # No inputs.
    ],
)
def test_standard_deviation(shape, std):
    values = draw(shape)
    assert values.shape == shape and values.dtype == "float32"
    # 20 000 draws: the standard error is 1 / sqrt(40 000) = 0.5 %.
    np.testing.assert_allclose(values.std(), std, rtol=0.02)
    assert abs(values.mean()) < 0.03 * std


def test_values_are_cut_at_two_sigmas_before_the_correction():
    # 2 * 1.1368 / sqrt(400) = 0.11368
    values = np.abs(draw((400, 100)))
    assert values.max() <= 0.11368 + 1e-6
    assert values.max() > 0.113


def test_matches_a_loop():
    # Draws again, all rejected ones at once, until none is left.
    rng = np.random.default_rng(3)
    expected = list(rng.standard_normal(60))
    while rejected := [i for i, x in enumerate(expected) if abs(x) > 2]:
        for index in rejected:
            expected[index] = rng.standard_normal()
    expected = np.reshape(expected, (4, 3, 5)) * 0.5 * 1.1368 / np.sqrt(12)
    np.testing.assert_allclose(draw((4, 3, 5), 0.5, 3), expected, rtol=1e-6)


def test_scale():
    np.testing.assert_allclose(
        draw((30, 20), scale=0.01), 0.01 * draw((30, 20)), rtol=1e-5
    )
    np.testing.assert_array_equal(draw((30, 20), scale=0.0), 0.0)


def test_one_seed_gives_the_same_values_on_every_backend():
    # default_rng(0) starts with 0.12573022, -0.13210486: times 1.1368 / sqrt(2)
    np.testing.assert_allclose(
        draw((2, 1)), [[0.10106690], [-0.10619128]], rtol=1e-5
    )


def test_without_a_seed_every_instance_differs():
    one, other = (to_numpy(FanInTruncatedNormal()((4, 4))) for _ in range(2))
    assert (one != other).all()


def test_keras_seeds_what_has_no_seed():
    draws = []
    for _ in range(2):
        keras.utils.set_random_seed(7)
        draws.append(to_numpy(FanInTruncatedNormal()((4, 4))))
    np.testing.assert_array_equal(*draws)


def test_config_round_trip():
    initializer = FanInTruncatedNormal(0.5)
    config = keras.saving.serialize_keras_object(initializer)
    copy = keras.saving.deserialize_keras_object(json.loads(json.dumps(config)))
    np.testing.assert_array_equal(
        to_numpy(copy((3, 4))), to_numpy(initializer((3, 4)))
    )


def test_dtype():
    assert "bfloat16" in str(FanInTruncatedNormal()((2, 2), "bfloat16").dtype)


def test_spread_seeds():
    assert spread_seeds(None, 3) == [None, None, None]
    seeds = spread_seeds(5, 3)
    assert seeds == spread_seeds(5, 3)
    assert len({*seeds, *spread_seeds(6, 3)}) == 6
    assert all(type(seed) is int for seed in seeds)
