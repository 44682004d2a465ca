"""What must be the same when a run goes on."""

import keras

from keras_dreamer import spaces

# Budget and ratio may change: the run goes on under the new ones.
_FREE = ("env_steps", "train_ratio")


def describe(model):
    """Returns the settings of a compiled model as a dict for JSON."""
    config = model.get_config()
    return {
        "config": config["config"],
        "observation_space": config["observation_space"],
        "action_space": config["action_space"],
        "optimizer": keras.saving.serialize_keras_object(model.optimizer),
        "dtype": model.dtype_policy.name,
        "backend": keras.backend.backend(),
    }


def check(path, saved, model):
    """Refuses to go on with other settings.

    Backend and dtype may differ. The learning rate of the optimizer is a state
    that comes with the weights.

    Args:
        path: path of the checkpoint, for the message.
        saved: dict, what `describe` returned.
        model: `Dreamer`.
    """
    own, saved = _flat(describe(model)), _flat(saved)
    differ = [
        f"{name}: {own.get(name)!r} here, {saved.get(name)!r} in the checkpoint"
        for name in {**own, **saved}
        if own.get(name) != saved.get(name)
    ]
    if differ:
        raise ValueError(
            "A run can only go on with the sizes, recipe, spaces and optimizer "
            f"it was started with. Received: {str(path)!r}, which differs in "
            f"{'; '.join(differ)}. Make the model with the Config of the run, "
            "or start another one in a logdir of its own."
        )


def _flat(settings):
    optimizer = settings["optimizer"]
    fields = {
        **{k: v for k, v in settings["config"].items() if k not in _FREE},
        "observation_space": spaces.from_config(settings["observation_space"]),
        "action_space": spaces.from_config(settings["action_space"]),
        "optimizer": optimizer["class_name"],
    }
    for name, value in optimizer["config"].items():
        if name != "name" and not _is_rate(name, value):
            fields[f"optimizer/{name}"] = value
    return fields


def _is_rate(name, value):
    return name == "learning_rate" and isinstance(value, float)
