"""What one replay row consists of."""

import collections.abc

import ml_dtypes
import numpy as np

from keras_dreamer import spaces

FLAGS = ("is_first", "is_last", "is_terminal")
LATENTS = ("deter", "stoch")


class Schema:
    """Fields of one replay row and the checks of the steps that fill them.

    A nested key is joined to one name, `{"observation": {"x": ...}}` to
    `observation/x`.

    Attributes:
        fields: dict from name to `(shape, dtype)` of one row.
        spaces: dict of `observation_space` and `action_space`, for JSON.

    Args:
        config: `Config`. `deter`, `stoch` and `classes` are the latents'
            sizes. Without `replay_context` no latents are stored.
        envs: object with `single_observation_space` and
            `single_action_space`.
        dtype: string. Type of the stored `deter`.
    """

    def __init__(self, config, envs, dtype):
        self.spaces = {
            f"{group}_space": spaces.to_config(
                getattr(envs, f"single_{group}_space")
            )
            for group in ("observation", "action")
        }
        self.leaves = {
            f"{group}/{key}": leaf
            for group in ("observation", "action")
            for key, leaf in spaces.leaves(
                getattr(envs, f"single_{group}_space"), group
            ).items()
        }
        self.fields = {
            name: (tuple(leaf.shape), np.dtype(leaf.dtype))
            for name, leaf in self.leaves.items()
        }
        self.fields["reward"] = ((), np.dtype("float32"))
        self.fields.update({name: ((), np.dtype(bool)) for name in FLAGS})
        self.latents = {}
        if config.replay_context:
            self.classes = config.classes
            self.latents = {
                "context/deter": ((config.deter,), numpy_dtype(dtype)),
                "context/stoch": (
                    (config.stoch,),
                    np.min_scalar_type(config.classes - 1),
                ),
            }
        self.fields.update(self.latents)

    def flatten(self, steps, batch):
        """Returns the fields of steps and refuses what does not fit.

        Args:
            steps: nest of arrays `(*batch, ...)` as `Replay.add` describes.
            batch: tuple. `()` for one step, `(N,)` for several.

        Returns:
            dict from field name to array. Latents that are left out are
            missing here too.
        """
        flat = {}
        for name, value in steps.items():
            if isinstance(value, collections.abc.Mapping):
                flat.update({f"{name}/{k}": v for k, v in value.items()})
            else:
                flat[name] = value
        self._check_names(flat)
        flat = {k: np.asarray(v) for k, v in flat.items() if k in self.fields}
        for name, value in flat.items():
            self._check_shape(name, value.shape, batch)
        return flat

    def flatten_latents(self, latents, batch):
        """Returns the latents as stored fields, like `flatten`."""
        if set(latents) != set(LATENTS):
            raise ValueError(
                f"Latents must have the keys {sorted(LATENTS)}. Received: "
                f"{sorted(latents)}. Give the latents of `loss_terms`."
            )
        flat = {
            f"context/{name}": np.asarray(latents[name]) for name in LATENTS
        }
        for name, value in flat.items():
            expected = (*batch, *self.fields[name][0])
            if value.shape != expected:
                raise ValueError(
                    f"Latents must have one entry for every step id, `{name}` "
                    f"the shape {expected}. Received: shape={value.shape}. "
                    "Leave the context rows out of the step ids: "
                    "`step_id[:, replay_context:]`."
                )
        return flat

    def nest(self, flat):
        """Returns `{"observation/x": ...}` as `{"observation": {"x": ...}}`."""
        nest = {}
        for name, value in flat.items():
            group, _, key = name.partition("/")
            if key:
                nest.setdefault(group, {})[key] = value
            else:
                nest[group] = value
        return nest

    def describe(self):
        """Returns the fields as a JSON dict, to be kept beside saved rows."""
        described = {
            name: {"shape": list(shape), "dtype": dtype.name}
            for name, (shape, dtype) in self.fields.items()
        }
        for name, leaf in self.leaves.items():
            described[name]["sizes"] = [int(size) for size in leaf.sizes]
        if self.latents:
            described["context/stoch"]["sizes"] = [self.classes]
        return described

    def _check_names(self, flat):
        given = set(flat)
        required = set(self.fields)
        optional = {f"context/{name}" for name in LATENTS}
        if not given & optional:
            required -= optional
        missing = sorted(required - given)
        unknown = sorted(given - set(self.fields) - optional)
        if missing or unknown:
            raise ValueError(
                "A replay step needs exactly the keys of the spaces that the "
                f"replay was made for: {sorted(required)}. Received: "
                f"missing={missing}, unknown={unknown}. Nested keys are joined "
                'by "/" here. Add and remove keys accordingly, or make the '
                "replay for the spaces that these steps come from."
            )

    def _check_shape(self, name, shape, batch):
        expected = (*batch, *self.fields[name][0])
        if shape != expected:
            raise ValueError(
                f"`{name}` of a replay step must have shape {expected}. "
                f"Received: shape={shape}. Give one step to `add`, and "
                "steps with a leading axis, one entry of `streams` for each, "
                "to `add_batch`."
            )


def numpy_dtype(name):
    """Returns the NumPy dtype of a Keras dtype name, `bfloat16` included."""
    if str(name) == "bfloat16":
        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)
