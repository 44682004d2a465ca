import keras
import numpy as np
import pytest
from helpers import to_numpy
from keras import ops

from keras_dreamer.models.terms import UpdateMeans
from keras_dreamer.models.terms import metric_names
from keras_dreamer.models.terms import weighted_total

TRUE = ops.convert_to_tensor(True)
FALSE = ops.convert_to_tensor(False)


def test_total_is_the_scaled_sum_of_means():
    terms = {
        "rec/a": ops.convert_to_tensor([[1.0, 3.0]]),
        "rec/b": ops.convert_to_tensor([[4.0, 4.0]]),
        "rep": ops.convert_to_tensor([[10.0, 30.0]]),
        "repval": ops.convert_to_tensor([[5.0]]),
    }
    scales = {"rec": 1.0, "rep": 0.1, "repval": 0.3}
    # 1 * 2 + 1 * 4 + 0.1 * 20 + 0.3 * 5 = 9.5
    assert float(weighted_total(terms, scales)) == pytest.approx(9.5)


def test_total_is_a_mean_not_a_sum_over_the_batch():
    small = {"rew": ops.ones((2, 3))}
    large = {"rew": ops.ones((20, 30))}
    scales = {"rew": 1.0}
    assert float(weighted_total(small, scales)) == float(
        weighted_total(large, scales)
    )


def test_metric_names_are_unique_and_begin_with_the_loss():
    names = metric_names(["position", "rew"], ["action"])
    assert names[0] == "loss"
    assert len(set(names)) == len(names)
    # An observation called like a term keeps its own name.
    assert {"loss/rec/rew", "loss/rew", "rew", "ent/action"} <= set(names)


def test_means_are_over_updates():
    means = UpdateMeans(["a", "b"])
    means.update_state({"b": ops.ones(()), "a": 2 * ops.ones(())}, TRUE)
    means.update_state({"b": ops.ones(()), "a": 6 * ops.ones(())}, TRUE)
    np.testing.assert_allclose(to_numpy(means.vector()), [4.0, 1.0, 0.0])
    result = {k: float(v) for k, v in means.result().items()}
    assert result == {"a": 4, "b": 1, "skipped": 0}


def test_skipped_updates_are_counted_and_enter_no_mean():
    means = UpdateMeans(["a", "b"])
    bad = {"a": ops.convert_to_tensor(np.nan), "b": 5 * ops.ones(())}
    latest = means.update_state(bad, FALSE)
    np.testing.assert_array_equal(to_numpy(latest), [np.nan, 5, 1])
    # There is no mean yet.
    np.testing.assert_array_equal(to_numpy(means.vector()), [np.nan, np.nan, 1])
    means.update_state({"a": ops.ones(()), "b": 2 * ops.ones(())}, TRUE)
    means.update_state(bad, FALSE)
    np.testing.assert_array_equal(to_numpy(means.vector()), [1, 2, 2])


def test_means_start_again_after_a_reset():
    means = UpdateMeans(["a"])
    means.update_state({"a": ops.ones(())}, TRUE)
    means.update_state({"a": ops.ones(())}, FALSE)
    means.reset_state()
    means.update_state({"a": 3 * ops.ones(())}, TRUE)
    np.testing.assert_array_equal(to_numpy(means.vector()), [3, 0])


def test_means_are_float32_under_any_policy():
    keras.config.set_dtype_policy("mixed_bfloat16")
    assert all(v.dtype == "float32" for v in UpdateMeans(["a"]).variables)
