"""From a batch of the replay to the inputs of the loss."""

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
    return ops.reshape(one_hot, (*ops.shape(index)[:-1], width))


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
    for name, shape in _expected_shapes(model, batch).items():
        value = batch
        for part in name:
            value = value[part]
        if tuple(value.shape) != shape:
            raise ValueError(
                f"The batch's {'/'.join(name)} must have the shape {shape}: "
                "batch, time and the space's own, as in `is_first`. "
                f"Received: shape={tuple(value.shape)}. Use a replay of the "
                "same environments and configuration."
            )


def _expected_shapes(model, batch):
    """Returns `{path: shape}` of a batch as long as its `is_first`."""
    time = tuple(batch["is_first"].shape)
    shapes = {(name,): time for name in ("reward", "is_last", "is_terminal")}
    leaves = {
        "observation": model.observation_leaves,
        "action": model.action_leaves,
    }
    for name, expected in leaves.items():
        for key, leaf in expected.items():
            shapes[name, key] = (*time, *leaf.shape)
    if model.config.replay_context:
        shapes["context", "deter"] = (time[0], model.config.deter)
        shapes["context", "stoch"] = (time[0], model.config.stoch)
    return shapes
