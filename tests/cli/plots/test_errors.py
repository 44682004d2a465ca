import numpy as np

from keras_dreamer.inspection.open_loop import OpenLoop
from keras_dreamer.spaces import Leaf
from keras_dreamer_cli.plots.errors import prediction_errors

X = Leaf("x", "continuous", (2,))
MODE = Leaf("mode", "discrete", (), (2,))
ONES = np.ones((1, 4), bool)


def result(leaf, truth, prediction, valid=ONES):
    truth = np.asarray(truth, float if leaf is X else int)
    zeros = np.zeros(truth.shape[:2])
    return OpenLoop(
        2,
        {leaf.key: np.asarray(prediction, float)},
        {leaf.key: truth},
        zeros,
        zeros,
        valid,
    )


def errors(leaf, *args, **kwargs):
    found = prediction_errors(result(leaf, *args, **kwargs), {leaf.key: leaf})
    return found[leaf.key]


def test_numbers_by_hand():
    # The second number never changes and has no scale. The first one has the
    # standard deviation 2 around 0.
    truth = [[[-2, 5], [2, 5], [-2, 5], [2, 5]]]
    guess = [[[9, 9], [9, 9], [0, 5], [3, 5]]]
    error = errors(X, truth, guess)
    # |0 + 2| / 2, |3 - 2| / 2; the last observation was 2.
    assert error.model.tolist() == [1.0, 0.5]
    assert error.hold.tolist() == [2.0, 0.0]


def test_root_mean_square_over_windows():
    truth = np.array([[[-2, 0], [2, 0]] * 2] * 2, float)
    guess = truth.copy()
    guess[0, 2:, 0] += 6  # 3 and 0 standard deviations.
    valid = np.ones((2, 4), bool)
    error = errors(X, truth, guess, valid=valid)
    np.testing.assert_allclose(error.model, np.sqrt([9 / 2, 9 / 2]))
    valid[1, 3] = False
    error = errors(X, truth, guess, valid=valid)
    np.testing.assert_allclose(error.model, [np.sqrt(9 / 2), 3.0])


def test_what_is_not_available_does_not_count():
    truth = [[[-2, 0], [2, 0], [-np.inf, 0], [-2, 0]]]
    guess = [[[0, 0], [0, 0], [0, 0], [-2, 0]]]
    error = errors(X, truth, guess)
    assert np.isnan(error.model[0]) and error.model[1] == 0.0


def test_a_constant_observation():
    truth = np.full((1, 4, 2), 3.0)
    error = errors(X, truth, truth + 0.5)
    assert error.model.tolist() == [0.5, 0.5]


def test_classes_by_hand():
    # Class 1 with 0.75, class 0 with 0.1; the last observation was class 1.
    prediction = [[[0.5, 0.5], [0.5, 0.5], [0.25, 0.75], [0.1, 0.9]]]
    error = errors(MODE, [[0, 1, 1, 0]], prediction)
    np.testing.assert_allclose(error.model, [0.25, 0.9])
    assert error.hold.tolist() == [0.0, 1.0]
    error = errors(MODE, [[0, 1, -1, 0]], prediction)
    assert np.isnan(error.model[0])


def test_rewards_are_there():
    truth = np.zeros((1, 4, 2))
    found = prediction_errors(result(X, truth, truth), {"x": X})
    assert found["reward"].model.tolist() == [0.0, 0.0]
