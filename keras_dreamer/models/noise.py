"""All randomness of an update or an action, drawn in bulk."""

import math

import numpy as np
from keras import ops

from keras_dreamer import backend


def noise_shapes(config, action, batch_size, batch_length):
    """Returns the shapes of the noise of one update.

    Args:
        config: `Config`.
        action: dict of `Leaf`, the action's keys.
        batch_size: int. B.
        batch_length: int. T, trained steps.

    Returns:
        Dict with `posterior` `(B, T, S)`, `prior` `(H, B * T, S)` and
        `action`, a dict of `(H, B * T, *shape)`: time first where imagination
        reads it step by step.
    """
    steps = (config.imag_length, batch_size * batch_length)
    return {
        "posterior": (batch_size, batch_length, config.stoch),
        "prior": (*steps, config.stoch),
        "action": {k: (*steps, *leaf.shape) for k, leaf in action.items()},
    }


def draw_noise(shapes, action, seed):
    """Draws uniform noise for categoricals and normal noise for normals.

    Args:
        shapes: what `noise_shapes` returned.
        action: dict of `Leaf`.
        seed: `keras.random.SeedGenerator`, used twice.

    Returns:
        Nest of float32 tensors.
    """
    flat = {("posterior",): shapes["posterior"], ("prior",): shapes["prior"]}
    flat.update({("action", k): s for k, s in shapes["action"].items()})
    normal = {p for p in flat if p[1:] and not action[p[1]].discrete}
    drawn = {
        **_cut(
            backend.uniform, {p: flat[p] for p in flat if p not in normal}, seed
        ),
        **_cut(backend.normal, {p: flat[p] for p in flat if p in normal}, seed),
    }
    return {
        "posterior": drawn["posterior",],
        "prior": drawn["prior",],
        "action": {key: drawn["action", key] for key in action},
    }


def _cut(draw, shapes, seed):
    """Draws once and cuts the numbers into tensors of several shapes."""
    sizes = [math.prod(shape) for shape in shapes.values()]
    if not sizes:
        return {}
    numbers = draw((sum(sizes),), seed=seed)
    # `ops.split` refuses to leave a tensor whole, except on JAX.
    stops = np.cumsum(sizes).tolist()
    return {
        path: ops.reshape(numbers[stop - size : stop], shape)
        for (path, shape), size, stop in zip(
            shapes.items(), sizes, stops, strict=True
        )
    }


def mode_noise(shapes, action, normal):
    """Returns the noise of a deterministic update.

    `None` makes a categorical take its most probable class.
    """
    return {
        "posterior": None,
        "prior": None,
        "action": {
            key: None
            if leaf.discrete
            else ops.full(shapes["action"][key], normal, "float32")
            for key, leaf in action.items()
        },
    }


def acting_noise(config, action, batch_size, rng, deterministic):
    """Draws the noise of one action on the host.

    Args:
        config: `Config`.
        action: dict of `Leaf`.
        batch_size: int. N, number of environments.
        rng: `numpy.random.Generator`.
        deterministic: bool. Whether to take the modes of all distributions.

    Returns:
        Pair of the posterior's noise, `(N, S)` or `None`, and the dict of the
        action's noise, `(N, *shape)` or `None`; float32 NumPy arrays.
    """
    shapes = {key: (batch_size, *leaf.shape) for key, leaf in action.items()}
    if deterministic:
        return None, {
            key: None if leaf.discrete else np.zeros(shapes[key], "float32")
            for key, leaf in action.items()
        }
    return _uniform(rng, (batch_size, config.stoch)), {
        key: (_uniform if leaf.discrete else _normal)(rng, shapes[key])
        for key, leaf in action.items()
    }


def _uniform(rng, shape):
    return rng.random(shape, dtype="float32")


def _normal(rng, shape):
    return rng.standard_normal(shape, dtype="float32")
