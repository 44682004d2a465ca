"""Writing one checkpoint."""

from keras_dreamer.callbacks.resumable import Resumable
from keras_dreamer.checkpoints import record
from keras_dreamer.checkpoints import settings

AGENT = "agent.keras"


def save(directory, previous, model, replay, callbacks, **counters):
    """Writes a checkpoint into an empty directory.

    Args:
        directory: path.
        previous: path of the checkpoint before, or `None`.
        model: `Dreamer`, with its newest variables.
        replay: `Replay` or `None`.
        callbacks: list of callbacks; the state of each `Resumable` is saved.
        **counters: further integers of the record.
    """
    model.save(directory / AGENT)
    if replay is not None:
        replay.save_changes(directory, previous)
    content = {
        **counters,
        "replay": replay is not None,
        "seed": model.seed,
        "callbacks": {
            name: callback.get_state()
            for name, callback in named(callbacks).items()
        },
        "settings": settings.describe(model),
    }
    record.write(directory, content)


def named(callbacks):
    """Returns the `Resumable` ones by class name, numbered if need be."""
    found = {}
    for callback in callbacks:
        if isinstance(callback, Resumable):
            kind = type(callback).__name__
            same = sum(type(c).__name__ == kind for c in found.values())
            found[f"{kind}/{same}" if same else kind] = callback
    return found
