"""Loops on JAX whose gradients cost less than those of `jax.lax.scan`.

Automatic differentiation of a loop computes the gradient of every kernel at
every step, from few rows, and adds it to a sum of the kernel's size: more
bytes than all else that a step backward moves. `scan_layers` takes slots,
zeros, as inputs of the loop, and says that their gradients are what was to be
multiplied. One product for each kernel follows.
"""

import functools

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

from keras_dreamer.backend import flat

# Arithmetic between products is done again, rather than stored, by gradients.
_KEEP = jax.checkpoint_policies.save_only_these_names("product")


def on_cpu():
    """Tells whether computations run on the CPU."""
    return jax.default_backend() == "cpu"


def scan_layers(step, layers, carry, inputs, length):
    """See `keras_dreamer.backend.flat.scan_layers`."""
    rows = jax.tree.leaves(carry)[0].shape[0]
    kernels = {name: layer["kernel"] for name, layer in layers.items()}
    slots = jax.tree.map(lambda kernel: _slots(kernel, rows, length), kernels)
    fixed = jax.tree.map(_both_ways, kernels)

    def with_slots(carry, entry):
        inputs, slots = entry
        now = dict(layers)
        for name, kernel in kernels.items():
            stand_ins = jax.tree.map(
                lambda _, *pair: _Kernel(*pair),
                kernel,
                fixed[name],
                slots[name],
            )
            now[name] = {**layers[name], "kernel": stand_ins}
        return step(now, carry, inputs)

    lean = jax.checkpoint(with_slots, prevent_cse=False, policy=_KEEP)
    return jax.lax.scan(lean, carry, (inputs, slots), length)


class _Kernel:
    """Stands for a kernel that a step multiplies by once."""

    def __init__(self, kernel, slots):
        self.kernel = kernel
        self.slots = slots

    def __call__(self, x):
        if self.slots is None:
            raise ValueError(
                "Each kernel of `scan_layers` must be used once a step: its "
                "gradient is that of one product. Received: a second product. "
                "Close over the layers that are used more often."
            )
        slots, self.slots = self.slots, None
        return checkpoint_name(_product(x, self.kernel, slots), "product")


def matmul(x, kernel):
    """See `keras_dreamer.backend.flat.matmul`."""
    return kernel(x) if isinstance(kernel, _Kernel) else _matmul(x, kernel)


@jax.custom_vjp
def _matmul(x, kernel):
    return x @ kernel


def _matmul_forward(x, kernel):
    return x @ kernel, (x, kernel)


def _matmul_backward(saved, g):
    x, kernel = saved
    back = g @ jnp.swapaxes(kernel, -1, -2)
    if kernel.ndim == 2:
        x, g = (array.reshape(-1, array.shape[-1]) for array in (x, g))
    return back, _kernel_gradient(x, g)


_matmul.defvjp(_matmul_forward, _matmul_backward)


def _both_ways(kernel):
    """Returns the kernel and its transpose, which one stores and reads."""
    kernel = jax.lax.stop_gradient(kernel)
    return kernel, _stored(jnp.swapaxes(kernel, -1, -2))


@jax.custom_vjp
def _product(x, kernel, slots):
    return x @ kernel[0]


def _product_forward(x, kernel, slots):
    return x @ kernel[0], (x, kernel[1])


def _product_backward(saved, g):
    x, transposed = saved
    return g @ transposed, None, (x, g)


_product.defvjp(_product_forward, _product_backward)


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def _slots(kernel, rows, length):
    *blocks, inputs, outputs = kernel.shape
    return tuple(
        jnp.zeros((length, *blocks, rows, width), kernel.dtype)
        for width in (inputs, outputs)
    )


def _slots_forward(kernel, rows, length):
    return _slots(kernel, rows, length), None


def _slots_backward(rows, length, saved, upstream):
    x, g = (_merge_steps(array) for array in upstream)
    return (_kernel_gradient(x, g),)


def _merge_steps(x):
    """Returns `(..., T * N, I)` of `(T, ..., N, I)`."""
    x = jnp.moveaxis(x, 0, -3)
    return x.reshape(*x.shape[:-3], -1, x.shape[-1])


_slots.defvjp(_slots_forward, _slots_backward)


def _kernel_gradient(x, g):
    """Returns the gradient of the kernel in `x @ kernel`."""
    if x.ndim == 3:
        return jnp.stack(list(map(_kernel_gradient, x, g)))
    return _stored(outer(g, x)).T


def outer(a, b):
    """See `keras_dreamer.backend.flat.outer`."""
    narrow = a.shape[1] < b.shape[1]
    return (_stored(a.T) if narrow else a.T) @ b


def _stored(x):
    """Keeps XLA for CPUs from doing a transposition within a product.

    Its products with a tensor that is stored the other way take 1.4 (size12m)
    to 1.8 times as long (size1m) as those with a copy of the narrower one.
    """
    if on_cpu():
        return jax.lax.optimization_barrier(x)
    return x


def accumulate(function, tensors, inputs):
    """See `keras_dreamer.backend.flat.accumulate`.

    On CPUs loss and gradient of one entry after another, so that activations
    stay in the cache: this takes two thirds of the time.
    """
    if on_cpu():
        return _accumulate(function, tensors, inputs)
    return flat.accumulate(function, tensors, inputs)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _accumulate(function, tensors, inputs):
    def step(total, rows):
        loss, outputs = function(tensors, rows)
        return total + loss, outputs

    return jax.lax.scan(step, jnp.zeros(()), inputs)


def _accumulate_forward(function, tensors, inputs):
    tensors, inputs = jax.tree.map(lambda x: x.value, (tensors, inputs))
    gradient = jax.value_and_grad(function, has_aux=True)

    def step(sums, rows):
        (loss, outputs), gradients = gradient(tensors, rows)
        return jax.tree.map(jnp.add, sums, (loss, gradients)), outputs

    zeros = jax.tree.map(
        lambda x: jnp.zeros(jnp.shape(x), "float32"), (0.0, tensors)
    )
    (loss, gradients), outputs = jax.lax.scan(step, zeros, inputs)
    return (loss, outputs), (tensors, inputs, gradients)


def _accumulate_backward(function, saved, upstream):
    tensors, inputs, gradients = saved
    loss, outputs = upstream
    if all(map(_is_zero, jax.tree.leaves(outputs))):
        gradients = jax.tree.map(
            lambda x, g: (loss * g).astype(x.dtype), tensors, gradients
        )
        return gradients, None
    # Somebody differentiates the outputs: not what training does.
    _, pull = jax.vjp(
        lambda tensors: flat.accumulate(function, tensors, inputs), tensors
    )
    upstream = jax.tree.map(
        lambda x: jnp.zeros(x.shape, x.dtype) if _is_zero(x) else x,
        upstream,
    )
    return *pull(upstream), None


def _is_zero(x):
    return isinstance(x, jax.custom_derivatives.SymbolicZero)


_accumulate.defvjp(
    _accumulate_forward, _accumulate_backward, symbolic_zeros=True
)
