"""How the error of a prediction grows with its distance."""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class Errors:
    """Errors of one key at each of H steps after the context.

    Numbers: root of the mean squared error over the standard deviation of what
    was observed. Classes: mean probability of the wrong classes.

    Attributes:
        model: `(H,)`, of the world model.
        hold: `(H,)`, of the last observation of the context, kept for ever.
    """

    model: np.ndarray
    hold: np.ndarray


def prediction_errors(result, leaves):
    """Returns `{key: Errors}` of all keys and of the reward.

    Args:
        result: `OpenLoop`.
        leaves: dict of the `Leaf` of each key.
    """
    found = {}
    for key, leaf in leaves.items():
        truth, predicted = result.truth[key], result.prediction[key]
        lead = truth.shape[:2]
        truth = np.asarray(truth, float).reshape(*lead, -1)
        if leaf.discrete:
            predicted = predicted.reshape(*truth.shape, -1)
            found[key] = _of_classes(truth.astype(int), predicted, result)
        else:
            predicted = predicted.reshape(truth.shape)
            found[key] = _of_numbers(truth, predicted, result)
    found["reward"] = _of_numbers(
        np.asarray(result.reward, float)[..., None],
        result.predicted_reward[..., None],
        result,
    )
    return found


def _of_numbers(truth, predicted, result):
    """Returns the errors of `(B, T, N)` arrays."""
    context = result.context
    truth = np.where(np.isfinite(truth), truth, np.nan)
    centred = truth - _mean_of_each(truth)
    std = np.sqrt(_mean_of_each(centred**2))
    moving = std > 1e-8  # What never changes has no scale.
    if not moving.any():
        moving, std = np.ones_like(moving), np.ones_like(std)

    def error(guess):
        scaled = ((guess - truth) / np.maximum(std, 1e-8))[:, context:, moving]
        scaled[~result.valid[:, context:]] = np.nan
        return np.sqrt(_mean(scaled**2))

    return Errors(error(predicted), error(truth[:, context - 1][:, None]))


def _of_classes(truth, predicted, result):
    """Returns the errors of `(B, T, N)` classes, `(B, T, N, C)` probabilities.

    A class of -1 is not available.
    """
    context = result.context
    known = (truth >= 0) & result.valid[..., None]
    index = np.maximum(truth, 0)[..., None]
    right = np.take_along_axis(predicted, index, axis=-1)[..., 0]
    wrong = np.where(known, 1.0 - right, np.nan)[:, context:]
    kept = truth[:, context - 1][:, None] != truth
    kept = np.where(known, kept, np.nan)[:, context:]
    return Errors(_mean(wrong), _mean(kept))


def _mean(values):
    """Returns the mean over all but the second axis, NaN if there is none."""
    known = np.isfinite(values)
    counts = known.sum(axis=(0, 2))
    sums = np.where(known, values, 0.0).sum(axis=(0, 2))
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _mean_of_each(values):
    """Returns the mean over the first two axes, 0 if there is none."""
    known = np.isfinite(values)
    sums = np.where(known, values, 0.0).sum(axis=(0, 1))
    return sums / np.maximum(known.sum(axis=(0, 1)), 1)
