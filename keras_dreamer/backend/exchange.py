"""The seam between Keras's training loop and ours."""

from keras import ops


class Exchange:
    """What passes between the dataset, the training step and callbacks.

    A plain object: Keras wraps dicts and lists that are set on a model.

    Attributes:
        source: `None` or function that returns the next batch, drawn in the
            main thread at the start of a step, on every backend.
        names: names of the scalars that a training step returns.
        step_id: `(B, K + T)` ids of the rows of the last batch, or `None`.
        latents: dict of tensors, the fresh latents of the last batch.
        interrupted: bool. Whether Ctrl-C asked for the end of training.
        state: on JAX, the state of a running `fit` after the last step.
        positions: on JAX, where each variable lies in that state.
    """

    __slots__ = (
        "interrupted",
        "latents",
        "names",
        "positions",
        "source",
        "state",
        "step_id",
    )

    def __init__(self, names):
        self.names = names
        self.source = None
        self.reset()

    def reset(self):
        """Forgets the last step."""
        self.interrupted = False
        self.step_id = None
        self.latents = None
        self.state = None
        self.positions = {}


def run_step(exchange, iterator, call):
    """Draws a batch, trains on it and keeps what must not enter the logs.

    Args:
        exchange: `Exchange` of the model.
        iterator: where Keras would take the batch from.
        call: function from a batch to what the training step returns.

    Returns:
        Dict of Python floats, the logs.
    """
    batch = exchange.source() if exchange.source else next(iterator)[0]
    batch = dict(batch)
    exchange.step_id = batch.pop("step_id", None)
    outputs = call(batch)
    exchange.latents = outputs["latents"]
    # One transfer for all scalars, which waits for the step to end.
    values = ops.convert_to_numpy(outputs["means"])
    return dict(zip(exchange.names, values.tolist(), strict=True))
