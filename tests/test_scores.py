import math

import numpy as np
import pytest

from keras_dreamer.scores import Scores
from keras_dreamer.scores import t_975


def make(*returns):
    lengths = np.arange(len(returns)) + 1
    return Scores(np.array(returns, float), lengths)


def test_mean_interval_and_extremes():
    scores = make(8.0, 12.0, 8.0, 12.0)
    assert (scores.mean, scores.min, scores.max) == (10, 8, 12)
    # The variance is 4 * 4 / 3, so the error of the mean sqrt(16 / 3 / 4),
    # and t of 3 degrees of freedom 3.1824.
    assert scores.ci == pytest.approx(3.182446 * math.sqrt(4 / 3))
    assert str(scores) == (
        "return 10.0 ± 3.7 (95 % of the mean) over 4 episodes, from 8.0 to "
        "12.0, length 2.5"
    )


def test_one_episode_has_no_interval():
    scores = make(3.0)
    assert scores.mean == 3.0 and math.isnan(scores.ci)
    assert str(scores) == (
        "return 3.0 over 1 episodes, from 3.0 to 3.0, length 1.0"
    )


def test_no_episodes_have_no_mean():
    assert math.isnan(make().mean) and math.isnan(make().ci)


@pytest.mark.parametrize(
    "freedom, expected",
    [(1, 12.7062), (3, 3.1824), (4, 2.7764), (9, 2.2622), (99, 1.9842)],
)
def test_quantiles_are_those_of_tables(freedom, expected):
    assert t_975(freedom) == pytest.approx(expected, abs=1e-3)


def test_the_interval_holds_the_mean_in_95_of_100_experiments():
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(4000, 6))
    held = [
        abs(scores.mean) <= scores.ci
        for scores in (make(*returns) for returns in draws)
    ]
    assert np.mean(held) == pytest.approx(0.95, abs=0.012)
