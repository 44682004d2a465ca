"""PyTorch: eager training step with autograd."""

import torch

from keras_dreamer.backend.exchange import run_step


def on_cpu():
    """Tells whether computations run on the CPU."""
    return not torch.cuda.is_available()


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
    flat, structure = torch.utils._pytree.tree_flatten(inputs)
    outputs = []
    for index in range(length):
        now = [None if x is None else x[index] for x in flat]
        now = torch.utils._pytree.tree_unflatten(now, structure)
        carry, output = step(carry, now)
        outputs.append(output)
    stack = torch.utils._pytree.tree_map(
        lambda *steps: torch.stack(steps), *outputs
    )
    return carry, stack


class Trainer:
    """Training step and newest variables on PyTorch."""

    def train_step(self, data):
        weights = self.trainable_variables
        update = self.update_terms(data[0])
        gradients = torch.autograd.grad(
            update.total, [w.value for w in weights]
        )
        with torch.no_grad():
            self.optimizer.apply(gradients, weights)
            return self.track_update(update)

    def make_train_function(self, force=False):
        if self.train_function is not None and not force:
            return
        super().make_train_function(force)
        inner, exchange = self.train_function, self.exchange

        def step(data):
            return run_step(
                exchange, iter(data), lambda batch: inner([(batch,)])
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
    def blend(self, targets, sources, rate):
        """Moves variables towards others: an exponential average."""
        for target, source in zip(
            self.newest(targets), self.newest(sources), strict=True
        ):
            target.copy_(rate * source + (1 - rate) * target)
