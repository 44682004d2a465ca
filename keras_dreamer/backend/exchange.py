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
        scalars: dict of Python floats, what the last update computed, without
            averaging.
        interrupted: bool. Whether Ctrl-C asked for the end of training.
        state: on JAX, the state of a running `fit` after the last step.
        positions: on JAX, where each variable lies in that state.
    """

    __slots__ = (
        "interrupted",
        "latents",
        "names",
        "positions",
        "scalars",
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
        self.scalars = {}
        self.state = None
        self.positions = {}

    @property
    def skipped(self):
        """Whether the last update was skipped, as it was not finite."""
        return bool(self.scalars.get("skipped"))


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
    means, latest = ops.convert_to_numpy(outputs["scalars"]).tolist()
    exchange.scalars = dict(zip(exchange.names, latest, strict=True))
    return dict(zip(exchange.names, means, strict=True))
