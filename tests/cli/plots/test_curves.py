import numpy as np
import pytest

from keras_dreamer_cli.plots.curves import bin_width
from keras_dreamer_cli.plots.curves import make_curve

NAN = np.nan


def test_bins_by_hand():
    # Bins up to 10, 20, 30 and 40: (1 + 3) / 2, 5, nothing, 9. Between 5 and
    # 9 lies 7.
    steps, values = [4, 10, 11, 40], [1.0, 3.0, 5.0, 9.0]
    curve = make_curve("a", [(steps, values)], 10)
    assert curve.steps.tolist() == [10, 20, 30, 40]
    assert curve.mean.tolist() == [2.0, 5.0, 7.0, 9.0]
    assert curve.std.tolist() == [0.0] * 4


def test_seeds_by_hand():
    # The second seed begins later and ends earlier.
    one = ([5, 15, 25, 35], [1.0, 2.0, 3.0, 4.0])
    other = ([15, 25], [4.0, 9.0])
    curve = make_curve("a", [one, other], 10)
    np.testing.assert_array_equal(curve.mean, [NAN, 3.0, 6.0, NAN])
    np.testing.assert_array_equal(curve.std, [NAN, 1.0, 3.0, NAN])
    np.testing.assert_array_equal(curve.seeds[1], [NAN, 4.0, 9.0, NAN])


def test_matches_a_loop():
    rng = np.random.default_rng(0)
    steps, values = np.sort(rng.uniform(0, 90, 40)), rng.normal(size=40)
    curve = make_curve("a", [(steps, values)], 20)
    for index, end in enumerate((20, 40, 60, 80, 100)):
        inside = (steps > end - 20) & (steps <= end)
        assert curve.mean[index] == pytest.approx(values[inside].mean())


def test_missing_numbers_do_not_count():
    curve = make_curve("a", [([5, 6, 15], [1.0, NAN, NAN])], 10)
    assert curve.mean.tolist() == [1.0]
    assert curve.samples[0][0].tolist() == [5.0]


def test_nothing_gives_nothing():
    curve = make_curve("a", [([], [])], 10)
    assert np.isnan(curve.mean).all()


@pytest.mark.parametrize(
    ("last", "width"),
    [(0, 1), (40, 1), (60, 2), (3000, 100), (50_000, 1000), (500_000, 10_000)],
)
def test_widths_are_round(last, width):
    assert bin_width(last) == width
