"""Choosing actions: one step of filtering, then the policy (item 7.1)."""

import keras
import numpy as np
from keras import ops

from keras_dreamer import backend
from keras_dreamer.layers.inputs import concat_inputs
from keras_dreamer.models.batch import one_hot_latents
from keras_dreamer.models.noise import acting_noise
from keras_dreamer.replay.schema import numpy_dtype


def initial_state(model, batch_size):
    """Returns the acting state before the first step, zeros."""
    config = model.config
    return {
        "deter": np.zeros(
            (batch_size, config.deter), numpy_dtype(model.compute_dtype)
        ),
        "stoch": np.zeros((batch_size, config.stoch), "int32"),
        "action": {
            key: np.zeros((batch_size, *leaf.shape), leaf.dtype)
            for key, leaf in model.action_leaves.items()
        },
    }


def act(model, observation, state, is_first, deterministic):
    """See `Dreamer.act`."""
    observation = model.observations.to_model(observation)
    state = next_state(model, observation, state, is_first, deterministic)
    return model.actions.from_model(state["action"]), state


def next_state(
    model, observation, state, is_first, deterministic=False, rng=None
):
    """Filters observations and samples actions, NumPy in and out.

    Args:
        model: `Dreamer`.
        observation: dict of `(N, *shape)` arrays, as `spaces.to_model`
            returns it.
        state: `None` or what this function returned before.
        is_first: `None` or `(N,)` bool array.
        deterministic: bool. Whether to take the modes.
        rng: `numpy.random.Generator` of the noise, or `None` for the model's
            own stream, which it moves on.

    Returns:
        Dict of arrays, see `Dreamer.act`.
    """
    count = len(next(iter(observation.values())))
    if is_first is None:
        is_first = (np.ones if state is None else np.zeros)(count, bool)
    if state is None:
        state = initial_state(model, count)
    if rng is None and not deterministic:
        rng = model.action_noise.next()
    noise = acting_noise(
        model.config, model.action_leaves, count, rng, deterministic
    )
    state = model.policy(observation, state, np.asarray(is_first), noise)
    # `keras.tree` would take longer than the conversion itself.
    return {
        "deter": _own(state["deter"]),
        "stoch": _own(state["stoch"]),
        "action": {key: _own(v) for key, v in state["action"].items()},
    }


def _own(tensor):
    """Returns an array that may be written to."""
    return np.array(backend.as_numpy(tensor))


def keep_inactive(old, new, active):
    """Keeps the state of environments without a new row."""
    if old is None or active.all():
        return new

    def choose(old, new):
        shape = (-1, *(1,) * (new.ndim - 1))
        return np.where(active.reshape(shape), new, old)

    return keras.tree.map_structure(choose, old, new)


def policy_step(model, observation, state, is_first, noise):
    """Filters one observation and samples actions, on tensors.

    Args:
        model: `Dreamer`.
        observation: dict of `(N, *shape)`.
        state: dict as `initial_state` returns it.
        is_first: `(N,)` bool.
        noise: what `acting_noise` returned.

    Returns:
        The next state, a dict of tensors.
    """
    nets = model.networks
    # PyTorch does not mix its tensors with NumPy's arrays.
    state, is_first, noise = keras.tree.map_structure(
        lambda x: None if x is None else ops.convert_to_tensor(x),
        (state, is_first, noise),
    )
    tensors = {
        name: getattr(nets, name).tensors() for name in ("enc", "dyn", "pol")
    }
    observation = {
        key: ops.cast(observation[key], leaf.dtype)
        for key, leaf in model.observation_leaves.items()
    }
    tokens = nets.enc.apply(tensors["enc"], observation)
    previous = {
        key: ops.cast(state["action"][key], leaf.dtype)
        for key, leaf in model.action_leaves.items()
    }
    action = concat_inputs(nets.pol.leaves, previous, tokens.dtype)
    carry = (
        ops.cast(state["deter"], tokens.dtype),
        one_hot_latents(model, state["stoch"]),
    )
    posterior_noise, action_noise = noise
    deter, stoch = nets.dyn.observe_step(
        tensors["dyn"], carry, tokens, action, is_first, posterior_noise
    )
    features = ops.concatenate([deter, stoch], axis=-1)
    policies = nets.pol.distributions(nets.pol.apply(tensors["pol"], features))
    config = model.config
    one_hot = ops.reshape(stoch, (-1, config.stoch, config.classes))
    return {
        "deter": deter,
        "stoch": ops.cast(ops.argmax(one_hot, axis=-1), "int32"),
        "action": {
            key: policy.sample(action_noise[key])
            for key, policy in policies.items()
        },
    }
