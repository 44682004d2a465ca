"""PyTorch: eager training step with autograd."""

import contextlib
import functools

import keras
import ml_dtypes
import torch

from keras_dreamer.backend import flat
from keras_dreamer.backend.exchange import run_step
from keras_dreamer.backend.finite import measure
from keras_dreamer.backend.flat import accumulate as accumulate
from keras_dreamer.backend.flat import matmul as matmul
from keras_dreamer.backend.flat import outer as outer
from keras_dreamer.backend.torch_compile import BodyCompiler
from keras_dreamer.backend.torch_compile import body_of
from keras_dreamer.backend.torch_laprop import LaPropUpdate as LaPropUpdate

normal = functools.partial(keras.random.normal, dtype="float32")
uniform = functools.partial(keras.random.uniform, dtype="float32")


def on_cpu():
    """Tells whether computations run on the CPU."""
    return not torch.cuda.is_available()


def blocks_apart():
    """Tells whether block layers are faster as one product a block."""
    return False  # Each operation costs more than it computes.


def configure(cache):
    """Sets the backend up; see `keras_dreamer.configure_runtime`."""
    del cache  # Nothing is kept.
    return on_cpu()


def as_numpy(tensor):
    """Returns an array to be read; on the CPU it is the tensor's memory."""
    tensor = tensor.detach().cpu()
    if tensor.dtype == torch.bfloat16:
        # NumPy doesn't know the type. Keras goes by way of float32, which
        # takes tens of milliseconds for the latents of a batch.
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def device():
    """Returns the name of the device that computes, as "cuda:0 Tesla T4"."""
    name = str(keras.ops.zeros(()).device)  # Keras chooses it.
    if name.startswith("cuda"):
        return f"{name} {torch.cuda.get_device_name(name)}"
    return name


def scan(step, carry, inputs, length):
    """Applies `step` to every entry of the first axis.

    Args:
        step: function `(carry, inputs_t) -> (carry, outputs_t)`.
        carry: nest of tensors.
        inputs: nest of `(length, ...)` tensors; `None` stays `None`.
        length: int.

    Returns:
        The last carry and the nest of `(length, ...)` outputs.
    """
    step, outputs = body_of(step), []
    for now in _entries(inputs, length):
        carry, output = step(carry, now)
        outputs.append(output)
    return carry, keras.tree.map_structure(
        lambda *steps: torch.stack(steps), *outputs
    )


scan_layers = functools.partial(flat.scan_layers, scan)


def _entries(nest, length):
    """Yields the entries of the first axis of all tensors in a nest."""
    # The gradient of `unbind` is one `stack`, that of an index a tensor of
    # the size of all entries at every step.
    columns = [
        [None] * length if x is None else x.contiguous().unbind()
        for x in keras.tree.flatten(nest)
    ]
    for entry in zip(*columns, strict=True):
        yield keras.tree.pack_sequence_as(nest, entry)


class Trainer:
    """Training step and newest variables on PyTorch."""

    def train_step(self, data):
        weights = self.trainable_variables
        update = self.update_terms(data[0])
        gradients = torch.autograd.grad(
            update.total, [w.value for w in weights]
        )
        with torch.no_grad():
            finite, norms = measure(
                update.total, gradients, self.gradient_parts
            )
            if finite:  # Waits for a GPU; a choice per weight costs more.
                self.optimizer.apply(gradients, weights)
            return self.track_update(update, finite, norms)

    def make_train_function(self, force=False):
        if self.train_function is not None and not force:
            return
        # Keras would compile the update as a whole.
        compiler = BodyCompiler() if self.jit_compile else None

        def step(data):
            with compiler.active() if compiler else contextlib.nullcontext():
                return run_step(
                    self.exchange,
                    iter(data),
                    lambda batch: self.train_step((batch,)),
                )

        self.train_function = step

    def compile_function(self, function, variables):
        """Returns `function` without gradients, on the newest `variables`."""
        del variables  # Captured by the function itself.
        return torch.no_grad()(function)

    def newest(self, variables):
        """Returns the values of variables, also while `fit` runs."""
        return [v.value for v in variables]

    @torch.no_grad()
    def blend(self, count, targets, sources, rates):
        """Moves variables towards others: an exponential average.

        Args:
            count: integer variable, how often this was done. It goes up.
            targets: list of variables.
            sources: list of variables.
            rates: pair of floats, for the first time and for all others.
        """
        rate = torch.where(count.value == 0, *rates)
        values = map(self.newest, (targets, sources))
        for target, source in zip(*values, strict=True):
            target.copy_(rate * source + (1 - rate) * target)
        count.value.add_(1)
