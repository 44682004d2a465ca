"""Loops with layers, and the products that make their gradients."""

import functools

import keras
import numpy as np
import pytest
from backend_tools import evaluate
from backend_tools import gradients
from keras import ops

from keras_dreamer import backend
from keras_dreamer.backend import flat
from keras_dreamer.backend import matmul
from keras_dreamer.backend import scan
from keras_dreamer.backend import scan_layers

RNG = np.random.default_rng(0)
START = RNG.normal(size=(3, 4)).astype("float32")
X = RNG.normal(size=(5, 3, 2)).astype("float32")
RECURRENT = RNG.normal(size=(4, 4)).astype("float32") / 2
WIDE = RNG.normal(size=(2, 6)).astype("float32")
NARROW = RNG.normal(size=(6, 4)).astype("float32") / 2
BIAS = RNG.normal(size=4).astype("float32")


def step(layers, carry, x):
    wide, narrow = layers["in"]["kernel"]
    drive = matmul(ops.tanh(matmul(x, wide)), narrow)
    recurrent = layers["recurrent"]
    carry = matmul(carry, recurrent["kernel"]) + recurrent["bias"]
    carry = ops.tanh(carry + drive)
    return carry, {"state": carry, "drive": ops.sum(drive, axis=-1)}


def run(loop):
    """Returns a function of all arrays that runs `step` in `loop`."""

    def outputs(start, x, recurrent, bias, wide, narrow):
        layers = {
            "recurrent": {"kernel": recurrent, "bias": bias},
            "in": {"kernel": [wide, narrow]},
        }
        return loop(layers, start, x)

    return outputs


def deferred(layers, start, x):
    return scan_layers(step, layers, start, x, 5)


def plain(layers, start, x):
    return scan(lambda *args: step(layers, *args), start, x, 5)


ARRAYS = (START, X, RECURRENT, BIAS, WIDE, NARROW)


def test_outputs_are_those_of_a_loop():
    last, outputs = evaluate(run(deferred), *ARRAYS)
    state = START
    for t in range(5):
        drive = np.tanh(X[t] @ WIDE) @ NARROW
        state = np.tanh(state @ RECURRENT + BIAS + drive)
        np.testing.assert_allclose(
            outputs["state"][t], state, rtol=1e-4, atol=1e-6
        )
        np.testing.assert_allclose(
            outputs["drive"][t], drive.sum(-1), rtol=1e-4, atol=1e-5
        )
    np.testing.assert_array_equal(last, outputs["state"][-1])


def test_gradients_are_those_of_scan():
    def loss(loop):
        def total(*arrays):
            last, outputs = run(loop)(*arrays)
            return ops.sum(last**2) + sum(
                ops.sum(x**3) for x in keras.tree.flatten(outputs)
            )

        return total

    pairs = zip(
        gradients(loss(deferred), *ARRAYS),
        gradients(loss(plain), *ARRAYS),
        strict=True,
    )
    for actual, expected in pairs:
        assert np.abs(expected).max() > 0.1
        np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-5)


def test_gradient_of_one_product_by_hand():
    """d sum_t x_t w / dw is the sum of all x_t."""

    def total(w):
        _, y = scan_layers(
            lambda layers, carry, x: (carry, matmul(x, layers["w"]["kernel"])),
            {"w": {"kernel": w}},
            ops.convert_to_tensor(START),
            ops.convert_to_tensor(X),
            5,
        )
        return ops.sum(y)

    (gradient,) = gradients(total, np.ones((2, 1), "float32"))
    np.testing.assert_allclose(gradient[:, 0], X.sum((0, 1)), rtol=1e-5)


def test_batched_kernels_have_the_gradients_of_scan():
    kernels = np.stack([RECURRENT, RECURRENT.T])
    start = np.stack([START, START[::-1]], axis=1)

    def total(kernels, deferred):
        def step(layers, carry, _):
            blocks = ops.swapaxes(carry, 0, 1)  # (blocks, rows, features)
            blocks = ops.tanh(matmul(blocks, layers["w"]["kernel"]))
            return ops.swapaxes(blocks, 0, 1), ops.sum(blocks)

        layers = {"w": {"kernel": kernels}}
        carry = ops.convert_to_tensor(start)
        if deferred:
            last, sums = scan_layers(step, layers, carry, None, 3)
        else:
            last, sums = scan(lambda *args: step(layers, *args), carry, None, 3)
        return ops.sum(last**2) + ops.sum(sums)

    actual, expected = (
        gradients(functools.partial(total, deferred=deferred), kernels)
        for deferred in (True, False)
    )
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.skipif(
    keras.backend.backend() != "jax", reason="others leave it to compilers"
)
def test_arithmetic_is_not_stored_for_gradients():
    """A step backward needs products and the carry, nothing in between."""
    import jax

    def total(kernel, depth):
        def step(layers, carry, _):
            x = matmul(carry, layers["w"]["kernel"])
            for _ in range(depth):
                x = ops.sigmoid(ops.tanh(x))
            return x, None

        layers = {"w": {"kernel": kernel}}
        last, _ = scan_layers(step, layers, ops.ones((3, 4)), None, 5)
        return ops.sum(last)

    def stored(depth):
        kernel = np.eye(4, dtype="float32")
        _, backward = jax.vjp(functools.partial(total, depth=depth), kernel)
        return [x.shape for x in jax.tree.leaves(backward)]

    assert stored(9) == stored(1)


@pytest.mark.skipif(
    keras.backend.backend() != "jax", reason="only JAX counts on it"
)
def test_a_second_use_in_a_step_is_refused():
    def twice(layers, carry, x):
        kernel = layers["w"]["kernel"]
        return matmul(matmul(carry, kernel), kernel), None

    with pytest.raises(ValueError, match="once a step.*a second product"):
        scan_layers(twice, {"w": {"kernel": RECURRENT}}, START, X, 5)


@pytest.mark.parametrize("widths", [(2, 5), (5, 2)])
def test_matmul_has_the_gradients_of_a_product(widths):
    x = RNG.normal(size=(3, 2, widths[0])).astype("float32")
    kernel = RNG.normal(size=widths).astype("float32")
    found = gradients(lambda *args: ops.sum(matmul(*args) ** 2), x, kernel)
    g = 2 * x @ kernel
    np.testing.assert_allclose(found[0], g @ kernel.T, rtol=1e-4)
    expected = np.einsum("abi,abo->io", x, g)
    np.testing.assert_allclose(found[1], expected, rtol=1e-4)


@pytest.mark.parametrize("module", [backend, flat], ids=["backend", "flat"])
@pytest.mark.parametrize("widths", [(2, 5), (5, 2), (3, 3)])
def test_outer_sums_the_outer_products_of_rows(module, widths):
    a, b = (RNG.normal(size=(7, n)).astype("float32") for n in widths)
    expected = sum(np.outer(a[i], b[i]) for i in range(7))
    actual = evaluate(module.outer, a, b)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
