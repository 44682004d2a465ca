"""Weights under the names of danijar/dreamerv3 at e3f0224 (item 2.17)."""

import numpy as np
from keras import ops

_COUNT = "slowval_count/value"


def export_weights(model):
    """See `Dreamer.official_weights`."""
    variables = {**_variables(model), _COUNT: model.slow_count}
    values = model.newest(list(variables.values()))
    return {
        name: ops.convert_to_numpy(value)
        for name, value in zip(variables, values, strict=True)
    }


def import_weights(model, params):
    """See `Dreamer.load_official_weights`."""
    variables = _variables(model)
    if _COUNT in params:  # Older checkpoints have none.
        variables[_COUNT] = model.slow_count
    missing = sorted(set(variables) - set(params))
    if missing:
        raise ValueError(
            f"The official weights lack {missing}. This model needs "
            f"{len(variables)} arrays. Received: {len(params)} arrays. Use "
            "the checkpoint of an agent with the same spaces and layers."
        )
    wrong = {
        name: (tuple(np.shape(params[name])), tuple(variable.shape))
        for name, variable in variables.items()
        if tuple(np.shape(params[name])) != tuple(variable.shape)
    }
    if wrong:
        raise ValueError(
            "The official weights must have this model's shapes. Received "
            f"other shapes (received, required): {wrong}. Use the size, "
            "observation keys and action keys of the checkpoint."
        )
    for name, variable in variables.items():
        variable.assign(ops.convert_to_tensor(params[name], variable.dtype))


def _variables(model):
    return {
        **model.networks.named_weights(),
        "retnorm/lo/value": model.retnorm_low,
        "retnorm/hi/value": model.retnorm_high,
    }
