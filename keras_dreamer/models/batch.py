"""From a batch of the replay to the inputs of the loss."""

import math

import numpy as np
from keras import ops

_KEYS = "observation action reward is_first is_last is_terminal".split()


def prepare_batch(model, batch):
    """Aligns a batch in time and casts it (items 2.15 and 5.8).

    Args:
        model: `Dreamer`.
        batch: nest of `(B, K + T, ...)` arrays, see `ReplayDataset.draw`.

    Returns:
        Dict of the T trained steps: `observation`, `previous_action`,
        `reward`, `is_first` (bool), `is_last`, `is_terminal` (float32), and
        `carry`, the state before them.
    """
    context = model.config.replay_context
    _check_batch(model, batch)
    trained = {
        name: ops.cast(batch[name], "float32")[:, context:]
        for name in ("reward", "is_last", "is_terminal")
    }
    is_first = ops.cast(batch["is_first"], "bool")[:, context:]
    carry = model.networks.dyn.initial(is_first.shape[0])
    if context:
        carry = _stored_state(model, batch["context"])
    else:
        # Nothing is known before the window: it starts from zeros (5.11).
        start = np.arange(is_first.shape[1]) == 0
        is_first = ops.logical_or(is_first, start)
    return {
        **trained,
        "observation": {
            key: ops.cast(batch["observation"][key], leaf.dtype)[:, context:]
            for key, leaf in model.observation_leaves.items()
        },
        "previous_action": {
            key: _shift(ops.cast(batch["action"][key], leaf.dtype), context)
            for key, leaf in model.action_leaves.items()
        },
        "is_first": is_first,
        "carry": carry,
    }


def _shift(action, context):
    """Returns the action before each trained step."""
    if context:
        return action[:, :-1]
    return ops.concatenate([ops.zeros_like(action[:, :1]), action[:, :-1]], 1)


def _stored_state(model, context):
    stoch = one_hot_latents(model, context["stoch"])
    return ops.cast(context["deter"], model.compute_dtype), stoch


def one_hot_latents(model, index):
    """Encodes `(..., S)` class indices as `(..., S * C)` one-hots."""
    config = model.config
    one_hot = ops.one_hot(
        ops.cast(index, "int32"), config.classes, dtype=model.compute_dtype
    )
    width = config.stoch * config.classes
    return ops.reshape(one_hot, (*index.shape[:-1], width))


def _check_batch(model, batch):
    needed = _KEYS + ["context"] * model.config.replay_context
    missing = [name for name in needed if name not in batch]
    leaves = {
        "observation": model.observation_leaves,
        "action": model.action_leaves,
    }
    for name, expected in leaves.items():
        given = batch.get(name, expected)
        missing += [f"{name}/{key}" for key in expected if key not in given]
    if missing:
        raise ValueError(
            f"The batch lacks {missing}. A batch needs {needed}, with every "
            f"key of the model's spaces. Received: {sorted(batch)}. Draw it "
            "from a `ReplayDataset` of the same environments, with the same "
            f"replay_context={model.config.replay_context}."
        )
    time = tuple(batch["is_first"].shape)
    for name, expected in leaves.items():
        for key, leaf in expected.items():
            shape = tuple(batch[name][key].shape)
            if shape != time + leaf.shape and math.prod(shape):
                raise ValueError(
                    f"The batch's {name}/{key} must have the shape "
                    f"{time + leaf.shape}: batch, time and the space's own. "
                    f"Received: shape={shape}. Use a replay of the same "
                    "environments."
                )
