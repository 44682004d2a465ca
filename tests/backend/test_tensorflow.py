import agents
import keras
import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
if keras.backend.backend() != "tensorflow":
    pytest.skip("another backend is active", allow_module_level=True)

from keras_dreamer.backend.tensorflow import device  # noqa: E402
from keras_dreamer.backend.tensorflow import normal  # noqa: E402
from keras_dreamer.backend.tensorflow import scan  # noqa: E402
from keras_dreamer.backend.tensorflow import uniform  # noqa: E402

PHILOX = 1  # Number of the algorithm in TensorFlow's programs.


@pytest.mark.parametrize("jit_compile", [False, True])
def test_scan_has_a_gradient_in_a_graph(jit_compile):
    # `keras.ops.scan` has none under XLA, and no outputs of another shape.
    @tf.function(jit_compile=jit_compile)
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            start = (tf.zeros(()), tf.zeros((2,)))
            _, outputs = scan(step, start, x, 5)
            total = tf.reduce_sum(outputs)
        return tape.gradient(total, x)

    def step(carry, x):
        total, pair = carry
        return (total + x, pair + x), total * x

    # d sum_t (x_0 + .. + x_t-1) x_t / dx_k is the sum of all others.
    x = tf.constant([1.0, 2.0, 3.0, 4.0, 5.0])
    np.testing.assert_allclose(gradient(x), 15 - x.numpy())


@pytest.mark.parametrize("inputs", [None, {"noise": None}])
def test_scan_needs_no_inputs(inputs):
    last, outputs = scan(lambda c, x: (c + 1.0, (c, x)), 0.0, inputs, 3)
    assert last == 3
    np.testing.assert_array_equal(outputs[0], [0, 1, 2])
    assert outputs[1] == inputs


def test_scan_is_one_loop_in_the_program():
    @tf.function
    def cumulate(x):
        return scan(lambda c, x: (c + x, c * x), 0.0, x, 50)

    graph = cumulate.get_concrete_function(tf.zeros(50)).graph
    loops = [op.type for op in graph.get_operations() if "While" in op.type]
    assert len(loops) == 1


@pytest.mark.parametrize("draw", [normal, uniform])
def test_random_numbers_come_from_one_named_algorithm(draw):
    # With `keras.random` the program chooses: 100 ms for a small update.
    seed = keras.random.SeedGenerator(0)
    program = tf.function(lambda: draw((3,), seed=seed))
    choices = {
        int(tf.get_static_value(op.inputs[-1]))
        for op in program.get_concrete_function().graph.get_operations()
        if op.type.startswith("StatelessRandom") and op.type.endswith("V2")
    }
    assert choices == {PHILOX}


def test_a_gpu_has_a_name(monkeypatch):
    config, details = tf.config, {"device_name": "Tesla T4"}
    monkeypatch.setattr(config, "list_logical_devices", lambda kind: [kind])
    monkeypatch.setattr(config, "list_physical_devices", lambda kind: [kind])
    monkeypatch.setattr(
        config.experimental, "get_device_details", lambda gpu: details
    )
    assert device() == "gpu:0 Tesla T4"
    details.clear()
    assert device() == "gpu:0"


def test_an_update_is_traced_once():
    model = agents.make_agent(
        agents.numbers(3), agents.bounded(2), **agents.SHALLOW
    )
    model.compile(jit_compile=False)
    traced = []
    loss_terms = model.loss_terms

    def counting(*args, **kwargs):
        traced.append(len(traced))
        return loss_terms(*args, **kwargs)

    model.loss_terms = counting
    batches = [agents.random_batch(model, seed) for seed in range(3)]
    for _ in range(2):
        model.fit(agents.FixedBatches(*batches, steps_per_epoch=3), verbose=0)
    assert len(traced) == 1
    assert int(model.optimizer.iterations) == 6
