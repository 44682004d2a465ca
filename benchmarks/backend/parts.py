"""Parts of an update, as the public loss terms divide it."""

import time

from keras import ops

WORLD_MODEL = ("rec", "rew", "con", "dyn", "rep")


def world_model_loss(model, update):
    """Returns the part of the total that trains the world model."""
    scales = model.config.loss_scales
    return sum(
        scales[name.split("/")[0]] * ops.mean(term)
        for name, term in update.terms.items()
        if name.split("/")[0] in WORLD_MODEL
    )


def noise_of(model, batch):
    """Draws the noise of an update on a batch."""
    rows, steps = batch["is_first"].shape
    return model.sample_noise(rows, steps - model.config.replay_context)


def compiled_parts(model, batch, compiled, gradient, wait):
    """Returns a function that times prefixes of an update.

    The compiler leaves out what a result does not need, so that each result
    stands for what comes before it.

    Args:
        model: `Dreamer`.
        batch: what a `ReplayDataset` draws.
        compiled: function `(model, function) -> compiled function`.
        gradient: the same, of the gradient of a function's first result.
        wait: function that returns when a nest of tensors is there.

    Returns:
        Function without arguments that returns a dict of milliseconds.
    """
    draw = compiled(model, lambda: noise_of(model, batch))
    noise = draw()

    def terms(batch, noise, training=False):
        return model.loss_terms(batch, noise, training)

    functions = {
        "observe": compiled(model, lambda *args: terms(*args).latents),
        "world_model_forward": compiled(
            model, lambda *args: world_model_loss(model, terms(*args))
        ),
        # Continue has the cheapest of the heads that imagination needs.
        "imagined": compiled(model, lambda *args: terms(*args).metrics["con"]),
        "forward": compiled(model, lambda *args: _everything(terms(*args))),
        "world_model": gradient(
            model, lambda *args: (world_model_loss(model, terms(*args)), ())
        ),
        "gradient": gradient(
            model, lambda *args: _everything(terms(*args, training=True))
        ),
    }

    def times():
        found = {"noise": milliseconds(draw, wait)[0]}
        for name, function in functions.items():
            found[name], _ = milliseconds(function, wait, batch, noise)
        return found

    times()  # Compiles.
    return times


def milliseconds(function, wait, *args):
    """Calls a function; returns the time it took and its result."""
    start = time.perf_counter()
    result = function(*args)
    wait(result)
    return 1e3 * (time.perf_counter() - start), result


def _everything(update):
    return update.total, (update.latents, update.metrics)


def compiled_breakdown(times):
    """Returns the parts, in milliseconds, from the times of prefixes."""
    imagination = times["imagined"] - times["observe"]
    heads = times["gradient"] - times["world_model"] - imagination
    optimizer = times["update"] - times["gradient"] - times["noise"]
    return {
        "noise": times["noise"],
        "world_model": times["world_model"],
        "imagination": imagination,
        "heads": heads,
        "optimizer": optimizer,
        "observe_forward": times["observe"],
        "world_model_forward": times["world_model_forward"],
        "forward": times["forward"],
    }
