"""What `fit` adds to Keras's own: callbacks, checks, a clean end."""

import contextlib
import signal
import threading

import keras

from keras_dreamer.callbacks.checkpoint import Checkpoint
from keras_dreamer.callbacks.evaluate import Evaluate
from keras_dreamer.callbacks.latent_write_back import LatentWriteBack
from keras_dreamer.callbacks.progress import Progress
from keras_dreamer.callbacks.run_log import RunLog
from keras_dreamer.callbacks.skip_limit import SkipLimit
from keras_dreamer.callbacks.slow_critic import SlowCritic
from keras_dreamer.callbacks.train_ratio import TrainRatio
from keras_dreamer.models.parallel import check_distribution
from keras_dreamer.models.start_line import start_line
from keras_dreamer.optimizers.laprop import LaProp
from keras_dreamer.replay.dataset import ReplayDataset


def recipe_optimizer(config):
    """Returns `LaProp` with the settings of a `Config` (item 4.3)."""
    return LaProp(
        learning_rate=config.lr,
        beta_1=config.beta1,
        beta_2=config.beta2,
        epsilon=config.eps,
        agc=config.agc,
        pmin=config.pmin,
        warmup=config.warmup,
    )


def check_compile(arguments):
    """Refuses arguments of `compile` that the agent cannot serve."""
    steps = arguments.get("steps_per_execution", 1)
    if steps != 1:
        raise ValueError(
            "The agent needs `steps_per_execution=1`: environments step and "
            "latents are written back between two updates. Received: "
            f"steps_per_execution={steps}. Leave the argument out."
        )
    own = [
        name
        for name in ("loss", "loss_weights", "metrics", "weighted_metrics")
        if arguments.get(name)
    ]
    if own:
        raise ValueError(
            "The agent brings its own losses and metrics, so `compile` takes "
            f"none. Received: {own}. Scale the losses with "
            "Config(loss_scales=...)."
        )


def fit(model, keras_fit, dataset, callbacks, verbose, arguments):
    """See `Dreamer.fit`."""
    if not model.compiled:
        raise ValueError(
            "The model must be compiled before `fit`. Received a model "
            "without an optimizer. Call model.compile() first; it uses LaProp "
            "with the recipe's settings."
        )
    # Nothing to shuffle: the replay is sampled at random.
    arguments.setdefault("shuffle", False)
    exchange = model.exchange
    exchange.reset()
    replayed = isinstance(dataset, ReplayDataset)
    check_distribution(model, dataset.batch_size if replayed else None)
    exchange.source = dataset.draw if replayed else None
    callbacks = _complete(model, dataset, callbacks, replayed, verbose)
    if verbose:
        print(start_line(model, dataset, callbacks), flush=True)
    limit = SkipLimit()
    callbacks.insert(0, limit)
    _prepare_checkpoints(dataset, callbacks, arguments)
    try:
        with _graceful_interrupt(model):
            history = keras_fit(
                dataset, callbacks=callbacks, verbose=verbose, **arguments
            )
        limit.check()
        return history
    except KeyboardInterrupt:
        if not exchange.interrupted:
            raise
        for callback in callbacks:
            callback.on_train_end()
        return model.history
    finally:
        exchange.source = None
        exchange.reset()


@contextlib.contextmanager
def _graceful_interrupt(model):
    """Lets the first Ctrl-C end training between two updates.

    In the middle of an update there is no state to keep: JAX has given the
    old one away and the new one is not there yet. A second Ctrl-C interrupts
    at once.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(signum, frame):
        if model.exchange.interrupted:
            model.exchange.interrupted = False  # `fit` lets this one pass.
            raise KeyboardInterrupt
        model.exchange.interrupted = True
        model.stop_training = True

    previous = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def _complete(model, dataset, callbacks, replayed, verbose):
    """Adds the callbacks without which the recipe would be wrong.

    Ours come first, in the order of Algorithm K, so that Keras's own see
    what they add to the logs.
    """
    callbacks = keras.tree.flatten(callbacks or [])
    if replayed:
        missing = {
            SlowCritic: lambda: SlowCritic(model.config.slow_rate),
            LatentWriteBack: LatentWriteBack,
        }
        for kind, make in missing.items():
            if not any(isinstance(c, kind) for c in callbacks):
                callbacks.append(make())
        for callback in callbacks:
            if isinstance(callback, LatentWriteBack | TrainRatio):
                callback.set_dataset(dataset)
    order = (SlowCritic, LatentWriteBack, TrainRatio, Evaluate)
    ours = [c for kind in order for c in callbacks if isinstance(c, kind)]
    others = [c for c in callbacks if not isinstance(c, order)]
    others.sort(key=lambda c: isinstance(c, Checkpoint))  # They come last.
    bar = [Progress()] if verbose and not _has_bar(others) else []
    callbacks = ours + others + bar
    ratios = [c for c in callbacks if isinstance(c, TrainRatio)]
    for callback in callbacks:
        if isinstance(callback, RunLog | Evaluate | Progress):
            callback.set_ratio(ratios[0] if ratios else None)
    return callbacks


def _prepare_checkpoints(dataset, callbacks, arguments):
    """Hands over what belongs to the run; goes on in a resumed epoch."""
    steps = arguments.get("steps_per_epoch") or getattr(
        dataset, "steps_per_epoch", None
    )
    for callback in callbacks:
        if isinstance(callback, Checkpoint):
            callback.set_run(dataset, callbacks)
            arguments.setdefault("initial_epoch", callback.initial_epoch(steps))


def _has_bar(callbacks):
    bars = keras.callbacks.ProgbarLogger  # Ours is one, too.
    return any(isinstance(callback, bars) for callback in callbacks)
