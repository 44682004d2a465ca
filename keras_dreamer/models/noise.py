"""All randomness of an update or an action, drawn in bulk."""

import math

import keras
import numpy as np
from keras import ops

from keras_dreamer import backend
from keras_dreamer.models.parallel import process_id


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


class NumberedNoise:
    """Random numbers of actions that are counted.

    An action's numbers follow from the seed and from how many came before:
    the same on every backend, and after a restart, but others in every
    process. The generator counts, so one serves all actions: to make a new one
    takes as long as a tenth of a small policy.

    Args:
        seed: int.

    Attributes:
        drawn: int. Actions that drew numbers so far.
    """

    def __init__(self, seed):
        self.drawn = 0
        self._generator = np.random.Generator(np.random.Philox(seed))
        # Lists: NumPy reads their entries one by one.
        self._state = keras.tree.map_structure(
            lambda x: x.tolist() if isinstance(x, np.ndarray) else x,
            self._generator.bit_generator.state,
        )

    def next(self):
        """Returns the `numpy.random.Generator` of the next action."""
        counter = self._state["state"]["counter"]
        counter[1:3] = self.drawn, process_id()
        self._generator.bit_generator.state = self._state
        self.drawn += 1
        return self._generator


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
    if deterministic:
        return None, {
            key: None
            if leaf.discrete
            else np.zeros((batch_size, *leaf.shape), "float32")
            for key, leaf in action.items()
        }
    return rng.random((batch_size, config.stoch), "float32"), {
        key: (rng.random if leaf.discrete else rng.standard_normal)(
            (batch_size, *leaf.shape), "float32"
        )
        for key, leaf in action.items()
    }
