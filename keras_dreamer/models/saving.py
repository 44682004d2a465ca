"""What `.keras` and weight files hold of an agent besides its layers."""

import json

import keras
import numpy as np
from keras import ops

from keras_dreamer import spaces
from keras_dreamer.config import Config

# What the shapes of the weights depend on.
_SIZES = (
    "deter hidden units stoch classes blocks bins imglayers obslayers "
    "encoder_layers decoder_layers reward_layers continue_layers "
    "policy_layers value_layers"
).split()


class Saving:
    """Mixin of the model: its configuration, noise streams and sizes.

    Keras neither saves the states of seeds nor says which sizes differ when
    a file does not fit.
    """

    def get_config(self):
        return {
            "name": self.name,
            "dtype": keras.saving.serialize_keras_object(self.dtype_policy),
            "observation_space": spaces.to_config(self.observation_space),
            "action_space": spaces.to_config(self.action_space),
            "config": self.config.to_dict(),
            "seed": self.seed,
        }

    @classmethod
    def from_config(cls, config):
        policy = keras.saving.deserialize_keras_object(config["dtype"])
        return cls(
            spaces.from_config(config["observation_space"]),
            spaces.from_config(config["action_space"]),
            Config(**config["config"]),
            config["seed"],
            name=config["name"],
            dtype=policy,
        )

    def get_compile_config(self):
        config = super().get_compile_config()
        # As asked for, not as resolved here: "auto" means another thing on
        # the backend that loads the file.
        return {**config, "jit_compile": self.jit_asked} if config else config

    def compile_from_config(self, config):
        config = keras.saving.deserialize_keras_object(config)
        names = ("loss", "loss_weights", "metrics", "weighted_metrics")
        self.compile(**{k: v for k, v in config.items() if k not in names})

    def save_own_variables(self, store):
        super().save_own_variables(store)
        store["noise_seed"] = ops.convert_to_numpy(self.noise_seed.state)
        store["actions_drawn"] = np.asarray(self.action_noise.drawn)
        text = json.dumps(_sizes(self)).encode()
        store["sizes"] = np.frombuffer(text, "uint8")

    def load_own_variables(self, store):
        sizes = json.loads(np.asarray(store["sizes"]).tobytes())
        _check_sizes(sizes, _sizes(self))
        own = {k: store[k] for k in store.keys() if k.isdigit()}
        super().load_own_variables(own)
        self.noise_seed.state.assign(store["noise_seed"][()])
        self.action_noise.drawn = int(store["actions_drawn"][()])


def _sizes(model):
    """Returns what the shapes of the weights depend on, for JSON."""
    sizes = {name: getattr(model.config, name) for name in _SIZES}
    for name in ("observation", "action"):
        for key, leaf in getattr(model, f"{name}_leaves").items():
            shape = [leaf.kind, *leaf.shape]
            sizes[f"{name}/{key}"] = shape + [list(leaf.sizes)] * leaf.discrete
    return sizes


def _check_sizes(saved, own):
    different = {
        name: (saved.get(name), own.get(name))
        for name in sorted({*saved, *own})
        if saved.get(name) != own.get(name)
    }
    if different:
        raise ValueError(
            "The weights must be those of an agent with the same spaces and "
            "sizes. Received others (saved, this model's): "
            f"{different}. Make the model with the spaces and the Config of "
            "the saved one, or load its '.keras' file with "
            "keras.saving.load_model."
        )
