"""Files that act without Keras: TensorFlow SavedModel and ONNX."""

import os
import warnings

import keras

from keras_dreamer.models.acting_step import ActingStep
from keras_dreamer.models.acting_step import input_specs
from keras_dreamer.models.acting_step import output_names
from keras_dreamer.optional import optional

# The backends that each format can be written on.
_BACKENDS = {
    "tf_saved_model": ("tensorflow", "jax"),
    "onnx": ("torch",),
}
# What writes the format there, besides the backend itself.
_PACKAGES = {"tf_saved_model": "tensorflow", "onnx": "onnx"}


class Exporting:
    """Mixin of the model: writes the acting step for other programs."""

    def export(
        self,
        filepath,
        format="tf_saved_model",
        verbose=None,
        deterministic=False,
    ):
        """Writes the acting step as a file for a runtime without Keras.

        `docs/export.md` lists its inputs and outputs, and how to run it. It
        computes in float32, whatever the dtype policy.

        Args:
            filepath: path of the file, or of the folder of a SavedModel.
            format: "tf_saved_model", on the backends TensorFlow and JAX, or
                "onnx", on PyTorch.
            verbose: `None` or bool. Whether Keras prints what it wrote.
            deterministic: bool. Whether the file takes the modes of latents
                and policy. Otherwise its inputs include noise.
        """
        _check(format)
        agent = _frozen(self)
        specs = input_specs(agent, deterministic)
        # Exporters warn of tensors that are constants, which is meant here, and
        # of their own age.
        with warnings.catch_warnings(action="ignore"):
            ActingStep(agent, deterministic).export(
                os.fspath(filepath),
                format=format,
                verbose=verbose,
                input_signature=[specs],
            )
        if format == "onnx":
            _name_outputs(filepath, output_names(agent))


def _check(format):
    backend = keras.backend.backend()
    if format not in _BACKENDS:
        raise ValueError(
            f"An agent can be exported as one of {list(_BACKENDS)}. Received: "
            f"format={format!r}. Choose one of these, or save it as a "
            "'.keras' file with `model.save`."
        )
    if backend not in _BACKENDS[format]:
        usable = " or ".join(f"KERAS_BACKEND={b}" for b in _BACKENDS[format])
        raise ValueError(
            f"format={format!r} cannot be written on this backend. Received: "
            f"KERAS_BACKEND={backend}. Save the agent as a '.keras' file, "
            f"which loads on every backend, and export it under {usable}."
        )
    package = _PACKAGES[format]  # Also the name of the extra.
    optional(package, package)


def _frozen(model):
    """Returns a copy whose weights are constants, in float32."""
    config = {**model.get_config(), "dtype": "float32"}
    copy = type(model).from_config(config)
    copy.load_official_weights(model.official_weights())
    # PyTorch writes no constants that could be trained.
    copy.trainable = False
    return copy


def _name_outputs(filepath, names):
    """Gives the outputs of an ONNX file, in order, names."""
    onnx = optional("onnx", "onnx")
    model = onnx.load(filepath)
    new = dict(zip((o.name for o in model.graph.output), names, strict=True))
    for node in model.graph.node:
        for values in (node.input, node.output):
            values[:] = [new.get(value, value) for value in values]
    for output in model.graph.output:
        output.name = new[output.name]
    onnx.save(model, filepath)
