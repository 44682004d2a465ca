"""Layers whose mathematics is a pure function of their weights."""

from typing import Any

import keras
from keras import ops

from keras_dreamer.backend import matmul
from keras_dreamer.backend import outer


class FunctionalLayer(keras.layers.Layer):
    """Layer that names its parts and computes with any tensors for weights.

    A subclass returns its parts from `named_layers` and its mathematics from
    `apply(tensors, *inputs)`. Loops over time call `apply` with weights that
    are cast once, or whose gradients are stopped; `call` uses the layer's
    own weights. The names are those of danijar/dreamerv3 at e3f0224, so
    that the path of a weight is also its name in official checkpoints.
    """

    def named_layers(self) -> dict[str, Any]:
        """Returns a nest of dicts: name -> layer."""
        raise NotImplementedError

    def apply(self, tensors: dict[str, Any], *inputs: Any) -> Any:
        """Returns the outputs for the weights in `tensors`."""
        raise NotImplementedError

    def tensors(self, stop_gradient: bool = False) -> dict[str, Any]:
        """Returns the weights as a nest of tensors in the compute dtype."""
        fix = ops.stop_gradient if stop_gradient else ops.convert_to_tensor
        return _map_weights(
            self.named_layers(), lambda w: fix(_cast(w, self.compute_dtype))
        )

    def named_weights(self) -> dict[str, keras.Variable]:
        """Returns `{"part/weight": keras.Variable}` in a fixed order."""
        flat = {}
        nest = _map_weights(self.named_layers(), lambda weight: weight)
        _flatten(nest, "", flat)
        return flat

    def call(self, inputs: Any) -> Any:
        return self.apply(self.tensors(), inputs)


def _cast(weight, dtype):
    # The scales of the norms stay in float32 (item 1.12).
    dtype = weight.dtype if weight.name == "scale" else dtype
    return ops.cast(ops.convert_to_tensor(weight), dtype)


def _map_weights(nest, function):
    if isinstance(nest, dict):
        return {k: _map_weights(v, function) for k, v in nest.items()}
    if isinstance(nest, FunctionalLayer):
        return _map_weights(nest.named_layers(), function)
    return {weight.name: function(weight) for weight in nest.weights}


def _flatten(nest, prefix, flat):
    for name, value in nest.items():
        if isinstance(value, dict):
            _flatten(value, f"{prefix}{name}/", flat)
        else:
            flat[prefix + name] = value


def dense(tensors, x):
    """Returns `x @ kernel + bias` (item 1.1)."""
    return matmul(x, tensors["kernel"]) + tensors["bias"]


def known_dense(transposed, bias, inputs, output):
    """Returns `output`, known to be that of a dense layer.

    Only its gradient with respect to the weights is computed here. That of
    the transposed kernel is what compilers compute best: the narrow gradient
    of the output, transposed, times the wide inputs.

    Args:
        transposed: `(units, features)` tensor, the kernel.
        bias: `(units,)` tensor.
        inputs: tuple of `(N, ...)` constants, the parts of the features.
        output: `(N, units)` constant.
    """

    @ops.custom_gradient
    def known(transposed, bias):
        def gradient(*args, upstream=None):
            # PyTorch's Keras passes the arguments, too.
            g = args[-1] if upstream is None else upstream
            kernels = [outer(g, x) for x in inputs]
            return ops.concatenate(kernels, axis=-1), ops.sum(g, axis=0)

        return output, gradient

    return known(transposed, bias)


class JoinedDense:
    """Several dense layers on the same input, computed as one product.

    Args:
        layers: dict of dicts with `kernel` and, except where it is 0, `bias`.
    """

    def __init__(self, layers):
        kernels = [tensors["kernel"] for tensors in layers.values()]
        biases = [
            tensors.get("bias", ops.zeros(kernel.shape[-1:], kernel.dtype))
            for tensors, kernel in zip(layers.values(), kernels, strict=True)
        ]
        self.tensors = {
            "kernel": ops.concatenate(kernels, axis=-1),
            "bias": ops.concatenate(biases, axis=0),
        }
        self.widths = {
            name: kernel.shape[-1]
            for name, kernel in zip(layers, kernels, strict=True)
        }

    def __call__(self, x):
        """Returns the dict of the layers' outputs."""
        product, outputs, start = dense(self.tensors, x), {}, 0
        for name, width in self.widths.items():
            outputs[name] = product[..., start : start + width]
            start += width
        return outputs


def rms_norm(tensors, x, epsilon=1e-4):
    """Divides by the root mean square, in float32 (item 1.3)."""
    x32 = ops.cast(x, "float32")
    mean = ops.mean(ops.square(x32), axis=-1, keepdims=True)
    return ops.cast(x32 * ops.rsqrt(mean + epsilon) * tensors["scale"], x.dtype)


def norm_silu(tensors, x):
    """Returns the norm followed by `x * sigmoid(x)`, the activation."""
    return ops.silu(rms_norm(tensors, x))


def hidden(dense_tensors, norm_tensors, x):
    """Hidden layer: dense, norm, activation."""
    return norm_silu(norm_tensors, dense(dense_tensors, x))


def swap_batch_and_time(nest):
    """Swaps the first two axes of all tensors; `None` stays `None`."""
    return keras.tree.map_structure(
        lambda x: None if x is None else ops.swapaxes(x, 0, 1), nest
    )
