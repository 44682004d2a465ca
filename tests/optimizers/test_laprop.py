import json
import math

import keras
import numpy as np
import pytest
from helpers import to_numpy
from helpers import trace
from keras import ops

from keras_dreamer.optimizers.laprop import LaProp

TRACE = trace("laprop")


def variables_of(values):
    return [keras.Variable(np.array(value, "float32")) for value in values]


def run(optimizer, params, updates):
    """Applies `updates`, one list of gradients each; yields the parameters."""
    variables = variables_of(params)
    for gradients in updates:
        gradients = [np.array(gradient, "float32") for gradient in gradients]
        optimizer.apply(
            [ops.convert_to_tensor(gradient) for gradient in gradients],
            variables,
        )
        yield [to_numpy(variable) for variable in variables]


def one_step(optimizer, param, gradient):
    """Returns the change of one parameter by one update."""
    ((updated,),) = run(optimizer, [param], [[gradient]])
    return updated - np.array(param, "float32")


def reference(params, updates, lr, agc=0.3, warmup=1000):
    """Algorithm I of the specification in float64."""
    params = [np.array(param, "float64") for param in params]
    nu = [0.0 for _ in params]
    mu = [0.0 for _ in params]
    for k, gradients in enumerate(updates):
        for i, g in enumerate(gradients):
            g = np.array(g, "float64")
            if agc:
                upper = agc * max(1e-3, np.linalg.norm(params[i]))
                g = g / max(1.0, np.linalg.norm(g) / upper)
            nu[i] = 0.999 * nu[i] + 0.001 * g**2
            u = g / (np.sqrt(nu[i] / (1 - 0.999 ** (k + 1))) + 1e-20)
            mu[i] = 0.9 * mu[i] + 0.1 * u
            rate = lr * (min(k / warmup, 1.0) if warmup else 1.0)
            params[i] = params[i] - rate * mu[i] / (1 - 0.9 ** (k + 1))
        yield [param.copy() for param in params]


def random_updates(seed, shapes, updates):
    rng = np.random.default_rng(seed)
    for _ in range(updates):
        scale = 10.0 ** rng.uniform(-3, 1)
        yield [scale * rng.normal(size=shape) for shape in shapes]


@pytest.mark.parametrize("case", TRACE["runs"])
def test_matches_the_trace_of_the_reference(case):
    optimizer = LaProp(
        case["lr"], agc=case.get("agc", 0.3), warmup=case["warmup"]
    )
    names = ["w", "b"]
    params = [TRACE["params"][name] for name in names]
    updates = [[grads[name] for name in names] for grads in TRACE["grads"]]
    for actual, expected in zip(
        run(optimizer, params, updates), case["params"], strict=True
    ):
        for name, value in zip(names, actual, strict=True):
            # The reference's 1 - 0.999 in float32 is off by 1.3e-5.
            np.testing.assert_allclose(
                value, expected[name], rtol=1e-5, atol=5e-7
            )


@pytest.mark.parametrize("agc", [0.3, None])
@pytest.mark.parametrize("warmup", [0, 5])
def test_matches_a_numpy_loop(agc, warmup):
    shapes = [(3, 4), (4,), (2, 3, 2), ()]
    rng = np.random.default_rng(0)
    params = [rng.normal(size=shape) for shape in shapes]
    params[1] = np.zeros(4)
    updates = list(random_updates(1, shapes, 20))
    optimizer = LaProp(1e-2, agc=agc, warmup=warmup)
    for actual, expected in zip(
        run(optimizer, params, updates),
        reference(params, updates, 1e-2, agc, warmup),
        strict=True,
    ):
        for x, y in zip(actual, expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-6)


def test_agc_literal():
    # norm(p) = norm([3, 4]) = 5, so norm(g) may be 0.3 * 5 = 1.5.
    # The first gradient has norm 15 and becomes g1 = [0.9, 1.2]; the second,
    # of norm 0.5, stays g2 = [0.3, 0.4]. With beta_1 = beta_2 = 0.5:
    # nu = 0.25 * g1**2 + 0.5 * g2**2 = [0.2475, 0.44], over 0.75 = [0.33, ...]
    # u1 = [1, 1], u2 = g2 / sqrt([0.33, 0.586667]) = [0.522233, 0.522233]
    # mu = 0.25 * u1 + 0.5 * u2 = 0.511116, over 0.75 = 0.681489
    optimizer = LaProp(0.0625, beta_1=0.5, beta_2=0.5, warmup=1)
    steps = run(optimizer, [[3.0, 4.0]], [[[9.0, 12.0]], [[0.3, 0.4]]])
    (first,), (second,) = steps
    np.testing.assert_array_equal(first, [3.0, 4.0])  # The warm-up starts at 0.
    step = 0.0625 * 0.681489
    np.testing.assert_allclose(second, [3 - step, 4 - step], rtol=1e-6)


def test_agc_norm_is_of_the_whole_tensor_and_has_a_floor():
    # norm(p) = 0 counts as 1e-3: the norm of g, sqrt(3 * 4 * 4) = 6.93, is
    # cut to 3e-4, each of the 12 elements to 3e-4 / sqrt(12) = 8.66025e-5.
    optimizer = LaProp(0.1)
    list(run(optimizer, [np.zeros((3, 2, 2))], [[np.full((3, 2, 2), 2.0)]]))
    nu = to_numpy(optimizer._nu[0]) / 2.0**28
    np.testing.assert_allclose(nu, 0.001 * 8.66025e-5**2, rtol=1e-5)


def test_first_update_fills_the_moments_only():
    variables = variables_of([[1.0, -1.0]])
    optimizer = LaProp(0.1, agc=0.0)
    optimizer.apply([ops.convert_to_tensor([2.0, -3.0])], variables)
    np.testing.assert_array_equal(to_numpy(variables[0]), [1.0, -1.0])
    np.testing.assert_allclose(to_numpy(optimizer._mu[0]), [0.1, -0.1], 1e-6)
    nu = to_numpy(optimizer._nu[0]) / 2.0**28
    np.testing.assert_allclose(nu, [0.004, 0.009], rtol=1e-6)


def test_warmup_is_linear():
    # Constant gradients make every normalised update 1, so the changes of the
    # parameter are the learning rates: 0, 1/4, 2/4, 3/4, 1, 1 times 0.1.
    optimizer = LaProp(0.1, agc=0.0, warmup=4)
    values = [x for (x,) in run(optimizer, [0.0], [[1.0]] * 6)]
    changes = -np.diff(values, prepend=0.0)
    np.testing.assert_allclose(
        changes, [0, 0.025, 0.05, 0.075, 0.1, 0.1], rtol=1e-4, atol=1e-7
    )


@pytest.mark.parametrize(
    ("agc", "scale"),
    [
        (0.0, 2.0**-40),
        (0.0, 2.0**20),
        (1e-12, 2.0**-20),  # Everything is clipped.
        (1e-12, 2.0**20),
    ],
)
def test_update_does_not_depend_on_the_scale_of_the_loss(agc, scale):
    shapes = [(3, 2), (2,)]
    updates = list(random_updates(2, shapes, 5))
    scaled = [[scale * g for g in gradients] for gradients in updates]
    params = [np.ones(shape) for shape in shapes]
    args = {"learning_rate": 0.1, "agc": agc, "warmup": 0}
    expected = list(run(LaProp(**args), params, updates))[-1]
    actual = list(run(LaProp(**args), params, scaled))[-1]
    for x, y in zip(actual, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5)


@pytest.mark.parametrize("size", [1e-12, 1e-16, 3e-18, 1e-18, 1e-19])
def test_tiny_gradients_give_updates_of_full_size(size):
    # u = g / (g + 1e-20), although 0.001 * g**2 is no normal float32.
    change = one_step(LaProp(1.0, warmup=0), [0.0], [size])
    np.testing.assert_allclose(change, [-size / (size + 1e-20)], rtol=1e-5)


@pytest.mark.parametrize("size", [1e-20, 1e-21, 1e-23, 1e-30])
def test_gradients_below_epsilon_give_small_updates(size):
    change = one_step(LaProp(1.0, warmup=0), [0.0], [size])
    np.testing.assert_allclose(change, [-size / (size + 1e-20)], rtol=0.05)


def test_zero_gradient_gives_zero_update():
    change = one_step(LaProp(1.0, warmup=0), [0.5, 0.5], [0.0, 0.0])
    np.testing.assert_array_equal(change, [0.0, 0.0])


def test_bias_correction_is_accurate():
    # With nu started at 0, n equal gradients keep every update at exactly 1.
    optimizer = LaProp(2.0**-10, agc=0.0, warmup=0)
    *_, (last,) = run(optimizer, [0.0], [[0.125]] * 300)
    np.testing.assert_allclose(last, -300 / 1024, rtol=1e-5)


@pytest.mark.parametrize("k", [1, 7, 1_000, 100_000, 10_000_000])
def test_scalars_at_any_update(k):
    optimizer = LaProp(0.5)
    optimizer._iterations.assign(k - 1)
    step_size, correction = map(to_numpy, optimizer._scalars(0.5))
    rate = 0.5 * min((k - 1) / 1000, 1)
    np.testing.assert_allclose(step_size, rate / (1 - 0.9**k), rtol=1e-5)
    exact = 1 / -math.expm1(k * math.log(0.999))
    np.testing.assert_allclose(correction, exact, rtol=1e-6)


def test_no_averaging_gives_the_sign():
    optimizer = LaProp(0.25, beta_1=0.0, beta_2=0.0, warmup=0)
    *_, (last,) = run(optimizer, [[0.0, 0.0]], [[[3.0, -1.0]], [[5.0, 2.0]]])
    np.testing.assert_allclose(last, [-0.5, 0.0], atol=1e-6)


def test_schedule_is_multiplied_by_the_warmup():
    # The schedule gives 1, 0.5, 0.25; the warm-up 0, 0.5, 1.
    schedule = keras.optimizers.schedules.ExponentialDecay(1.0, 1, 0.5)
    optimizer = LaProp(schedule, agc=0.0, warmup=2)
    values = [x for (x,) in run(optimizer, [0.0], [[1.0]] * 3)]
    np.testing.assert_allclose(values, [0.0, -0.25, -0.5], rtol=1e-4)


def test_callbacks_can_set_the_learning_rate():
    optimizer = LaProp(1.0, warmup=0)
    optimizer.learning_rate = 0.5
    np.testing.assert_allclose(one_step(optimizer, [0.0], [1.0]), [-0.5], 1e-5)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_moments_of_half_precision_variables_are_float32(dtype):
    variable = keras.Variable(np.ones(2), dtype=dtype)
    optimizer = LaProp(0.25, warmup=0)
    optimizer.apply([ops.ones(2, dtype=dtype)], [variable])
    assert optimizer._nu[0].dtype == optimizer._mu[0].dtype == "float32"
    change = to_numpy(ops.cast(variable, "float32")) - 1.0
    np.testing.assert_allclose(change, [-0.25, -0.25], rtol=0.01)


def test_nothing_else_regularises_or_clips():
    config = LaProp().get_config()
    names = ["weight_decay", "clipnorm", "global_clipnorm", "clipvalue"]
    assert [config[name] for name in names] == [None] * 4


def test_gradients_are_accumulated_before_the_update():
    optimizer = LaProp(0.5, warmup=1, gradient_accumulation_steps=2)
    values = [x for (x,) in run(optimizer, [1.0], [[1.0]] * 4)]
    np.testing.assert_allclose(values, [1.0, 1.0, 1.0, 0.5], rtol=1e-4)


def test_config_round_trip():
    optimizer = LaProp(
        learning_rate=0.25,
        beta_1=0.5,
        beta_2=0.75,
        epsilon=1e-8,
        agc=None,
        pmin=1e-2,
        warmup=7,
        name="mine",
        global_clipnorm=1.0,
    )
    config = json.loads(json.dumps(optimizer.get_config()))
    assert LaProp.from_config(config).get_config() == optimizer.get_config()
    serialized = keras.optimizers.serialize(optimizer)
    assert serialized["registered_name"] == "keras_dreamer>LaProp"
    restored = keras.optimizers.deserialize(serialized)
    assert restored.get_config() == optimizer.get_config()


def test_config_round_trip_of_a_schedule():
    schedule = keras.optimizers.schedules.ExponentialDecay(1.0, 1, 0.5)
    restored = LaProp.from_config(LaProp(schedule).get_config())
    assert restored._learning_rate.get_config() == schedule.get_config()


def small_model(optimizer, **compile_args):
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input((3,)),
            keras.layers.Dense(8, activation="tanh"),
            keras.layers.Dense(1),
        ]
    )
    model.compile(optimizer=optimizer, loss="mse", **compile_args)
    return model


def regression():
    x = np.random.default_rng(0).normal(size=(64, 3)).astype("float32")
    return x, x.sum(-1, keepdims=True)


@pytest.mark.parametrize(
    "compile_args",
    [{}, {"run_eagerly": True}, {"jit_compile": True}],
    ids=str,
)
def test_training_reduces_the_loss(compile_args):
    if keras.backend.backend() == "torch" and compile_args.get("jit_compile"):
        pytest.skip("torch compiles for a minute what the others do in one.")
    model = small_model(LaProp(1e-2, warmup=5), **compile_args)
    x, y = regression()
    before = model.evaluate(x, y, verbose=0)
    model.fit(x, y, batch_size=16, epochs=10, verbose=0)
    assert model.evaluate(x, y, verbose=0) < 0.2 * before


def test_embeddings_train():
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input((2,), dtype="int32"),
            keras.layers.Embedding(5, 4),
            keras.layers.Flatten(),
            keras.layers.Dense(1),
        ]
    )
    model.compile(optimizer=LaProp(1e-2, warmup=0), loss="mse")
    before = to_numpy(model.layers[0].embeddings)
    model.fit(np.array([[0, 1], [1, 0]]), np.ones((2, 1)), verbose=0)
    changed = to_numpy(model.layers[0].embeddings) != before
    np.testing.assert_array_equal(changed.any(-1), [1, 1, 0, 0, 0])


def test_saved_model_continues_where_it_was(tmp_path):
    model = small_model(LaProp(1e-2, warmup=20))
    x, y = regression()
    fit = {"batch_size": 16, "epochs": 2, "shuffle": False, "verbose": 0}
    model.fit(x, y, **fit)
    path = tmp_path / "model.keras"
    model.save(path)
    loaded = keras.saving.load_model(path)
    assert int(to_numpy(loaded.optimizer.iterations)) == 8
    for actual, expected in zip(
        loaded.optimizer.variables, model.optimizer.variables, strict=True
    ):
        np.testing.assert_array_equal(to_numpy(actual), to_numpy(expected))
    model.fit(x, y, **fit)
    loaded.fit(x, y, **fit)
    for actual, expected in zip(loaded.weights, model.weights, strict=True):
        np.testing.assert_allclose(
            to_numpy(actual), to_numpy(expected), rtol=1e-6, atol=1e-7
        )


def test_graph_and_eager_updates_agree():
    x, y = regression()
    eager = small_model(LaProp(1e-2, warmup=2), run_eagerly=True)
    graph = small_model(LaProp(1e-2, warmup=2))
    for model in (eager, graph):
        model.fit(x, y, batch_size=16, epochs=2, shuffle=False, verbose=0)
    for actual, expected in zip(graph.weights, eager.weights, strict=True):
        np.testing.assert_allclose(
            to_numpy(actual), to_numpy(expected), rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"beta_1": 1.0}, r"`beta_1` must be .* below 1.*beta_1=1.0.*Use 0.0"),
        ({"beta_2": -0.1}, r"`beta_2` must be at least 0.*beta_2=-0.1"),
        ({"epsilon": 0.0}, r"`epsilon` must be .* at least 1e-30.*epsilon=0.0"),
        ({"agc": -0.3}, r"`agc` must be .* at least 0.*agc=-0.3"),
        ({"pmin": 0.0}, r"`pmin` must be .* at least 1e-30.*pmin=0.0"),
        ({"warmup": -1}, r"`warmup` must be .* at least 0.*warmup=-1"),
        ({"learning_rate": "fast"}, "learning_rate=fast"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        LaProp(**arguments)
