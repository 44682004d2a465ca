"""What every backend module offers, on the active one."""

import agents
import keras
import numpy as np
import pytest
from helpers import to_numpy
from keras import ops

from keras_dreamer.backend import as_numpy
from keras_dreamer.backend import device
from keras_dreamer.backend import on_cpu
from keras_dreamer.backend import scan

pytestmark = pytest.mark.usefixtures("quick_backend")

INPUTS = np.arange(12, dtype="float32").reshape(4, 3)


# Arrays.


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_as_numpy_keeps_values_and_dtype(dtype):
    values = np.array([[1.5, -0.40625], [2.0**100, 0.0]])  # Exact in bfloat16.
    if dtype == "int32":
        values = np.array([[1, -2], [2**31 - 1, 0]])
    tensor = ops.cast(ops.convert_to_tensor(values), dtype)
    array = as_numpy(ops.transpose(tensor))
    assert isinstance(array, np.ndarray)
    assert array.dtype.name == dtype
    expected = ops.convert_to_numpy(tensor).T
    np.testing.assert_array_equal(array, expected)


# Scan.


def add_and_square(carry, inputs):
    """Outputs are shaped unlike the carry."""
    total, count = carry
    x, nothing = inputs["x"], inputs["nothing"]
    assert nothing is None
    total = total + x
    return (total, count + 1), {"square": ops.sum(total) ** 2, "total": total}


def test_scan_matches_a_loop():
    zero = ops.convert_to_tensor(np.zeros(3, "float32"))
    carry = (zero, ops.zeros((), "int32"))
    inputs = {"x": ops.convert_to_tensor(INPUTS), "nothing": None}
    (total, count), outputs = scan(add_and_square, carry, inputs, 4)
    sums = np.cumsum(INPUTS, axis=0)
    np.testing.assert_allclose(to_numpy(total), sums[-1])
    assert int(count) == 4
    np.testing.assert_allclose(to_numpy(outputs["total"]), sums)
    np.testing.assert_allclose(to_numpy(outputs["square"]), sums.sum(-1) ** 2)
    assert tuple(outputs["square"].shape) == (4,)


def test_scan_of_one_step_is_the_step():
    carry = (ops.ones(3), ops.zeros((), "int32"))
    inputs = {"x": ops.convert_to_tensor(INPUTS[:1]), "nothing": None}
    (total, _), outputs = scan(add_and_square, carry, inputs, 1)
    np.testing.assert_allclose(to_numpy(total), [1, 2, 3])
    np.testing.assert_allclose(to_numpy(outputs["square"]), [36])


def test_tests_run_on_the_cpu_unless_there_is_a_gpu():
    assert isinstance(on_cpu(), bool)
    assert (device() == "cpu") is on_cpu()


# Variables while `fit` runs.


class Watch(keras.callbacks.Callback):
    """Looks at the model after every update, without `self.model`."""

    def __init__(self, model):
        super().__init__()
        self.agent = model
        self.kernels = []
        self.slow = []
        self.value = []
        self.deter = []

    def on_train_batch_end(self, batch, logs=None):
        nets = self.agent.networks
        name = "dyn/dyngru/kernel"
        (kernel,) = self.agent.newest([nets.named_weights()[name]])
        self.kernels.append(to_numpy(kernel).copy())
        weights = self.agent.official_weights()
        self.slow.append(weights["slowval/head/logits/bias"])
        self.value.append(weights["val/head/logits/bias"])
        _, state = self.agent.act(OBSERVATION, deterministic=True)
        self.deter.append(state["deter"])


OBSERVATION = np.ones((2, 3), "float32")


@pytest.fixture(scope="module")
def model():
    model = agents.make_agent(
        agents.numbers(3), agents.bounded(2), **agents.SHALLOW, warmup=0
    )
    return agents.quick_compile(model)


@pytest.fixture(scope="module")
def watched(model):
    """A `fit` of 3 updates, and what was seen."""
    watch = Watch(model)
    start = model.official_weights()
    batch = agents.random_batch(model)
    agents.train(model, batch, updates=3, callbacks=[watch])
    return start, watch, model.official_weights()


def test_newest_variables_change_with_every_update(watched):
    start, watch, final = watched
    steps = [start["dyn/dyngru/kernel"], *watch.kernels]
    for before, after in zip(steps, steps[1:], strict=False):
        assert np.abs(before - after).max() > 1e-3
    np.testing.assert_array_equal(watch.kernels[-1], final["dyn/dyngru/kernel"])


def test_acting_follows_the_updates(watched, model):
    _, watch, _ = watched
    assert (watch.deter[0] != watch.deter[1]).any()
    assert (watch.deter[1] != watch.deter[2]).any()
    _, after = model.act(OBSERVATION, deterministic=True)
    np.testing.assert_array_equal(after["deter"], watch.deter[-1])


def test_the_slow_critic_moves_while_fit_runs(watched):
    _, watch, final = watched
    # The recipe copies the critic at the first update and then averages.
    np.testing.assert_array_equal(watch.slow[0], watch.value[0])
    for update in (1, 2):
        expected = 0.02 * watch.value[update] + 0.98 * watch.slow[update - 1]
        np.testing.assert_allclose(
            watch.slow[update], expected, rtol=1e-5, atol=1e-9
        )
    np.testing.assert_array_equal(
        watch.slow[-1], final["slowval/head/logits/bias"]
    )
    assert final["slowval_count/value"] == 3


def test_blend_of_plain_variables(model):
    count = keras.Variable(0, dtype="int32", trainable=False)
    target = keras.Variable([0.0, 4.0], trainable=False)
    source = keras.Variable([8.0, 8.0])
    for expected in ([8.0, 8.0], [12.0, 12.0]):
        model.blend(count, [target], [source], (1.0, 0.5))
        np.testing.assert_allclose(to_numpy(target), expected)
        source.assign([16.0, 16.0])
    assert int(count.value) == 2
    # 0.25 * 16 + 0.75 * 12 = 13
    model.blend(count, [target], [source], (1.0, 0.25))
    np.testing.assert_allclose(to_numpy(target), [13.0, 13.0])


def test_compiled_functions_read_the_newest_variables(model):
    variable = keras.Variable(2.0)
    double = model.compile_function(lambda x: x * variable.value, [variable])
    assert float(double(ops.ones(()))) == 2
    variable.assign(3.0)
    assert float(double(ops.ones(()))) == 3


def test_the_percentiles_follow_the_updates(model):
    before = float(model.retnorm_high.value)
    batch = agents.random_batch(model)
    logs = agents.train(model, batch, updates=2)
    assert logs["retnorm/hi"][0] != before
    found = float(to_numpy(model.retnorm_high))
    assert found == pytest.approx(logs["retnorm/hi"][1])


def test_updates_draw_new_noise(model):
    before = to_numpy(model.noise_seed.state).copy()
    agents.train(model, agents.random_batch(model), updates=1)
    assert (to_numpy(model.noise_seed.state) != before).any()
