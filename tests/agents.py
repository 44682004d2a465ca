"""Small agents, batches and gradients for the tests of models and backends."""

import contextlib
import functools

import gymnasium
import keras
import numpy as np
from helpers import GOLDEN
from helpers import to_numpy
from keras import ops

from keras_dreamer.config import Config
from keras_dreamer.models.dreamer import Dreamer
from keras_dreamer.replay.dataset import ReplayDataset

BACKEND = keras.backend.backend()
spaces = gymnasium.spaces

# The sizes of the golden files.
TINY = {
    "size": "small",
    "deter": 64,
    "hidden": 16,
    "units": 16,
    "stoch": 4,
    "classes": 4,
    "batch_size": 3,
    "batch_length": 6,
    "imag_length": 5,
    "lr": 1e-2,
    "warmup": 2,
}
# What compiles in half the time, where the depth of the networks is no matter.
SHALLOW = {
    "blocks": 2,
    "imglayers": 1,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "policy_layers": 1,
    "value_layers": 1,
}


def numbers(*shape):
    """Returns an unbounded `Box`."""
    return spaces.Box(-np.inf, np.inf, shape)


def bounded(*shape):
    """Returns a `Box` of [-1, 1]."""
    return spaces.Box(-1, 1, shape)


_MOTION = spaces.Dict(
    position=numbers(3), velocity=numbers(2), height=numbers()
)
_MODES = spaces.Dict(
    position=numbers(3),
    mode=spaces.Discrete(5),
    flags=spaces.MultiDiscrete([3, 3]),
)
_HYBRID = spaces.Dict(
    move=bounded(2), fire=spaces.Discrete(2), gear=spaces.MultiDiscrete([3, 3])
)
# Observation space, action space and what differs from the recipe.
GOLDENS = {
    "head_continuous": (_MOTION, bounded(2), {}),
    "head_discrete": (_MODES, spaces.Discrete(4), {}),
    "head_hybrid": (
        spaces.Dict(a=numbers(3), b=numbers(2, 2)),
        _HYBRID,
        {"contdisc": False},
    ),
    "head_nocontext": (
        spaces.Dict(x=numbers(4)),
        bounded(2),
        {"replay_context": 0, "batch_length": 7},
    ),
    "paper_continuous": (_MOTION, bounded(2), {}),
    "paper_discrete": (
        spaces.Dict(position=numbers(3)),
        spaces.Discrete(4),
        {},
    ),
}


def make_agent(observation=_MODES, action=_HYBRID, seed=0, **fields):
    """Returns a tiny agent, by default with all kinds of inputs."""
    own = {k: fields.pop(k) for k in ("dtype", "name") if k in fields}
    config = Config(**{**TINY, **fields})
    return Dreamer(observation, action, config, seed, **own)


def make_random_agent(*args, **kwargs):
    """Returns what `make_agent` does, with `random_weights`."""
    model = make_agent(*args, **kwargs)
    model.load_official_weights(random_weights(model))
    return model


def quick_compile(model, updates=1, **kwargs):
    """Compiles a model in the way that costs least for a number of updates.

    One core needs 30 seconds to trace and compile an update on TensorFlow, 10
    to trace it, 1 to run it eagerly.
    """
    options = {}
    if BACKEND == "tensorflow":
        eager = updates < 10
        options = {"run_eagerly": eager, "jit_compile": False}
    model.compile(**{**options, **kwargs})
    return model


@contextlib.contextmanager
def quick_backend():
    """Spends less time on what tiny agents have no use for."""
    if BACKEND == "jax":
        # XLA compiles in half the time, into slower programs.
        import jax

        name = "jax_disable_most_optimizations"
        before = jax.config.read(name)
        jax.config.update(name, True)
        yield
        jax.config.update(name, before)
    elif BACKEND == "torch":
        # Threads wait for each other longer than they compute, the more so
        # when several test processes share the cores.
        import torch

        before = torch.get_num_threads()
        torch.set_num_threads(1)
        yield
        torch.set_num_threads(before)
    else:
        yield


# Weights and batches.


def random_weights(model, seed=0):
    """Returns official weights in which every path carries signal.

    The same numbers on every backend, unlike Keras's initializers.
    """
    rng = np.random.default_rng(seed)
    weights = {}
    for name, value in sorted(model.official_weights().items()):
        noise = rng.standard_normal(value.shape)
        if name.endswith("kernel"):
            # Blocks: the fan-in is that of one group here.
            weights[name] = noise / np.sqrt(value.shape[-2])
        elif name.endswith("scale"):
            weights[name] = 1 + 0.2 * noise
        elif name.endswith("bias"):
            weights[name] = 0.2 * noise
        else:
            weights[name] = value
        if name.startswith(_TWO_HOT) and name.endswith("logits/bias"):
            # Their bins go to 5e8: prefer those near 0.
            weights[name] -= 2 * np.abs(np.linspace(-20, 20, len(value)))
    return {k: np.asarray(v, "float32") for k, v in weights.items()}


_TWO_HOT = ("rew/", "val/", "slowval/")


def random_batch(model, seed=0, batch_size=3):
    """Returns a batch with all kinds of episode ends, as far as it goes."""
    rng = np.random.default_rng(seed)
    config = model.config
    lead = (batch_size, config.batch_length + config.replay_context)
    flags = {
        name: np.zeros(lead, bool)
        for name in ("is_first", "is_last", "is_terminal")
    }
    # A terminal end, a time limit, and an end in the context row; the next
    # step is the first of another episode.
    for row, step in [(0, 2), (1, 4), (2, 0)]:
        flags["is_last"][row : row + 1, step : step + 1] = True
        flags["is_first"][row : row + 1, step + 1 : step + 2] = True
    flags["is_terminal"][0, 2] = True
    batch = {
        "observation": random_values(model.observation_leaves, rng, lead),
        "action": random_values(model.action_leaves, rng, lead),
        "reward": rng.standard_normal(lead).astype("float32"),
        **flags,
    }
    if config.replay_context:
        stoch = (batch_size, config.stoch)
        batch["context"] = {
            "deter": rng.uniform(-1, 1, (batch_size, config.deter)).astype(
                "float32"
            ),
            "stoch": rng.integers(config.classes, size=stoch, dtype="int32"),
        }
    return batch


def random_values(leaves, rng, lead):
    """Returns random `(*lead, *shape)` arrays of the entries of a space."""
    values = {}
    for key, leaf in leaves.items():
        shape = (*lead, *leaf.shape)
        if leaf.discrete:
            sizes = np.reshape(leaf.sizes, leaf.shape)
            values[key] = rng.integers(sizes, size=shape, dtype="int32")
        else:
            values[key] = rng.standard_normal(shape).astype("float32")
    return values


def random_noise(model, seed=0, batch_size=3):
    """Returns noise like `sample_noise`, the same on every backend."""
    rng = np.random.default_rng(seed)
    config = model.config
    rows = batch_size * config.batch_length
    steps = (config.imag_length, rows)

    def uniform(*shape):
        return rng.random(shape, dtype="float32")

    def normal(*shape):
        return rng.standard_normal(shape, dtype="float32")

    noise = {
        "posterior": uniform(batch_size, config.batch_length, config.stoch),
        "prior": uniform(*steps, config.stoch),
        "action": {
            key: (uniform if leaf.discrete else normal)(*steps, *leaf.shape)
            for key, leaf in model.action_leaves.items()
        },
    }
    return keras.tree.map_structure(ops.convert_to_tensor, noise)


# Goldens.


def load_golden(name):
    """Returns the arrays of a golden file."""
    with np.load(GOLDEN / f"{name}.npz") as file:
        return dict(file)


def golden_agent(name, values, **kwargs):
    """Returns the agent of a golden file, with its weights."""
    observation, action, fields = GOLDENS[name]
    recipe = name.split("_")[0]
    model = make_agent(
        observation, action, recipe=recipe, **{**fields, **kwargs}
    )
    model.load_official_weights(with_prefix(values, "param/"))
    return model


def golden_batch(model, values):
    """Returns the batch of a golden file."""
    data = with_prefix(values, "data/")
    flags = "reward is_first is_last is_terminal".split()
    batch = {
        "observation": {key: data[key] for key in model.observation_leaves},
        "action": {key: data[key] for key in model.action_leaves},
        **{name: data[name] for name in flags},
    }
    if model.config.replay_context:
        batch["context"] = {
            "deter": data["dyn/deter"][:, 0],
            "stoch": data["dyn/stoch"][:, 0].argmax(-1),
        }
    return batch


def with_prefix(values, prefix):
    """Returns the entries under a prefix, without it."""
    return {
        name.removeprefix(prefix): value
        for name, value in values.items()
        if name.startswith(prefix)
    }


def relative_error(actual, expected):
    """Returns the norm of the error over the norm of what is expected."""
    actual, expected = np.float64(actual), np.float64(expected)
    scale = np.linalg.norm(expected)
    return np.linalg.norm(actual - expected) / (scale or 1.0)


# Updates.


class FixedBatches(ReplayDataset):
    """Serves given batches in turn, without a replay."""

    def __init__(self, *batches, steps_per_epoch=1):
        size, length = batches[0]["is_first"].shape
        super().__init__(None, size, length, steps_per_epoch)
        self.batches = batches
        self.drawn = 0

    def draw(self):
        batch = self.batches[self.drawn % len(self.batches)]
        self.drawn += 1
        return batch


def use_mode_noise(model, normal=0.5):
    """Makes the updates of a model deterministic."""
    model.sample_noise = lambda size, length: model.mode_noise(
        size, length, normal
    )


def train(model, batch, updates, **kwargs):
    """Trains on one batch; returns the logs of each update."""
    history = model.fit(
        FixedBatches(batch), epochs=updates, verbose=0, **kwargs
    )
    return history.history


# Gradients.


def evaluate(model, batch, noise=None, training=True):
    """Returns `LossTerms` in NumPy; the percentiles stay as they are."""
    return differentiate(model, batch, noise, (), training)[0]


def gradients(model, batch, noise=None):
    """Returns `LossTerms` in NumPy and the gradient of the total by name."""
    terms, by_loss = differentiate(model, batch, noise, ("total",))
    return terms, by_loss["total"]


def differentiate(model, batch, noise, losses, training=True):
    """Differentiates means of loss terms with respect to all weights.

    Args:
        model: `Dreamer`.
        batch: what `loss_terms` takes.
        noise: what `loss_terms` takes; `None` for `mode_noise` with 0.5.
        losses: names of terms, or "total".
        training: bool.

    Returns:
        `LossTerms` of NumPy arrays, and `{loss: {weight: gradient}}`.
    """
    if noise is None:
        config = model.config
        rows = len(batch["is_first"])
        noise = model.mode_noise(rows, config.batch_length, 0.5)

    def means():
        result = model.loss_terms(batch, noise, training)
        all_means = {k: ops.mean(x) for k, x in result.terms.items()}
        all_means["total"] = result.total
        return {name: all_means[name] for name in losses}, result

    named = model.networks.named_weights()
    percentiles = (model.retnorm_low, model.retnorm_high)
    before = [to_numpy(variable) for variable in percentiles]
    method = {
        "jax": _jax_gradients,
        "tensorflow": _tensorflow_gradients,
        "torch": _torch_gradients,
    }[BACKEND]
    by_loss, result = method(means, list(named.values()), losses)
    for variable, value in zip(percentiles, before, strict=True):
        variable.assign(value)
    by_loss = {
        loss: {
            name: np.zeros(w.shape) if g is None else to_numpy(g)
            for (name, w), g in zip(named.items(), found, strict=True)
        }
        for loss, found in by_loss.items()
    }
    return keras.tree.map_structure(to_numpy, result), by_loss


def _jax_gradients(function, variables, losses):
    import jax

    def scoped(values):
        with keras.StatelessScope(zip(variables, values, strict=True)):
            return function()

    values = [variable.value for variable in variables]
    options = quick_options()
    if not losses:
        return {}, jax.jit(scoped, compiler_options=options)(values)[1]
    jacobian = jax.jacrev(scoped, has_aux=True)
    return jax.jit(jacobian, compiler_options=options)(values)


@functools.cache
def quick_options():
    """Returns options with which XLA compiles four times as fast."""
    import jax

    options = {
        "xla_backend_optimization_level": 0,
        "xla_llvm_disable_expensive_passes": True,
        "xla_cpu_use_fusion_emitters": False,
    }
    try:
        jax.jit(lambda x: x + 1, compiler_options=options)(1.0)
    except jax.errors.JaxRuntimeError:  # This version does not know them.
        return None
    return options


def _tensorflow_gradients(function, variables, losses):
    import tensorflow as tf

    values = [variable.value for variable in variables]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(values)
        means, result = function()
    return {name: tape.gradient(means[name], values) for name in losses}, result


def _torch_gradients(function, variables, losses):
    import torch

    values = [variable.value for variable in variables]
    fixed = [value for value in values if not value.requires_grad]
    for value in fixed:
        value.requires_grad_(True)
    means, result = function()
    found = {
        name: torch.autograd.grad(
            means[name], values, retain_graph=True, allow_unused=True
        )
        for name in losses
    }
    for value in fixed:
        value.requires_grad_(False)
    return found, result
