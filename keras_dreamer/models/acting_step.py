"""The acting step as a model of its own, to be exported."""

import functools

import keras
import numpy as np
from keras import ops

from keras_dreamer import spaces
from keras_dreamer.models.acting import policy_step


class ActingStep(keras.Model):
    """One step of acting as a function of named tensors.

    Observations and actions are the environment's numbers: float32, and int32
    for classes, which count from the space's `start`. All tensors have a
    leading axis N, one row for each environment.

    Inputs are `observation/<key>`, `is_first`, `state/...` and the noise:
    `uniform/...` in `[0, 1)` and `normal/...`, standard normal. Outputs are
    `action/<key>`, within the bounds of the space, and `next_state/...`, the
    state of the next call.

    Args:
        agent: `Dreamer` that computes in float32.
        deterministic: bool. Whether to take the modes of the latents and of
            the policy. There are no noise inputs then.
    """

    def __init__(self, agent, deterministic):
        super().__init__(name="acting_step", dtype="float32")
        nets = agent.networks
        # Their weights go into the file, and no others.
        self.parts = [
            nets.enc,
            nets.dyn.gru,
            nets.dyn.posterior_mlp,
            nets.dyn.posterior_logits,
            nets.pol,
        ]
        # Hidden in a function, so that Keras does not track the whole agent.
        self.compute = functools.partial(_step, agent, deterministic)
        self.built = True

    def call(self, inputs):
        """Returns the dict of outputs for the dict of inputs."""
        return self.compute(inputs)


def input_specs(agent, deterministic):
    """Returns the inputs of an `ActingStep`.

    Args:
        agent: `Dreamer`.
        deterministic: bool.

    Returns:
        Dict from name to `keras.InputSpec`, sorted by name.
    """
    config = agent.config
    actions = agent.action_leaves
    found = {
        **{
            f"observation/{key}": (leaf.shape, leaf.dtype)
            for key, leaf in agent.observation_leaves.items()
        },
        "is_first": ((), "bool"),
        "state/deter": ((config.deter,), "float32"),
        "state/stoch": ((config.stoch,), "int32"),
        **{
            f"state/action/{key}": (leaf.shape, leaf.dtype)
            for key, leaf in actions.items()
        },
    }
    if not deterministic:
        found["uniform/posterior"] = ((config.stoch,), "float32")
        for key, leaf in actions.items():
            found[_noise_name(key, leaf)] = (leaf.shape, "float32")
    return {
        name: keras.InputSpec(shape=(None, *shape), dtype=dtype, name=name)
        for name, (shape, dtype) in sorted(found.items())
    }


def output_names(agent):
    """Returns the names of the outputs of an `ActingStep`, sorted."""
    actions = agent.action_leaves
    return sorted(
        [
            *(f"action/{key}" for key in actions),
            "next_state/deter",
            "next_state/stoch",
            *(f"next_state/action/{key}" for key in actions),
        ]
    )


def _noise_name(key, leaf):
    return f"{'uniform' if leaf.discrete else 'normal'}/action/{key}"


def _step(agent, deterministic, inputs):
    actions = agent.action_leaves
    noise = (
        None,
        {key: None if a.discrete else 0.0 for key, a in actions.items()},
    )
    if not deterministic:
        noise = (
            inputs["uniform/posterior"],
            {key: inputs[_noise_name(key, a)] for key, a in actions.items()},
        )
    state = policy_step(
        agent,
        _observation(agent.observation_space, inputs),
        {
            "deter": inputs["state/deter"],
            "stoch": inputs["state/stoch"],
            "action": {key: inputs[f"state/action/{key}"] for key in actions},
        },
        inputs["is_first"],
        noise,
    )
    outputs = {f"next_state/{name}": state[name] for name in ("deter", "stoch")}
    space = agent.action_space
    for key, leaf, _ in spaces.entries(space, space, "action"):
        sampled = state["action"][key]
        outputs[f"next_state/action/{key}"] = sampled
        outputs[f"action/{key}"] = _to_environment(leaf, sampled)
    return dict(sorted(outputs.items()))  # Not all runtimes keep the names.


def _observation(space, inputs):
    """Returns the observation with classes that count from 0."""
    observation = {}
    for key, leaf, _ in spaces.entries(space, space, "observation"):
        value = inputs[f"observation/{key}"]
        if spaces.is_discrete(leaf):
            value = value - _constant(spaces.start(leaf), "int32")
        observation[key] = value
    return observation


def _to_environment(space, value):
    """Does what `spaces.from_model` does, on tensors of 32 bits."""
    if spaces.is_discrete(space):
        return value + _constant(spaces.start(space), "int32")
    below, above = space.bounded_below, space.bounded_above
    low = _constant(np.where(below & above, space.low, -1))
    high = _constant(np.where(below & above, space.high, 1))
    share = (ops.clip(value, -1.0, 1.0) + 1.0) / 2.0
    scaled = (1.0 - share) * low + share * high
    lowest = np.where(below, space.low, -np.inf)
    highest = np.where(above, space.high, np.inf)
    scaled = ops.maximum(scaled, _constant(lowest))
    scaled = ops.minimum(scaled, _constant(highest))
    return ops.round(scaled) if space.dtype.kind in "iu" else scaled


def _constant(value, dtype="float32"):
    return ops.convert_to_tensor(np.asarray(value, dtype))
