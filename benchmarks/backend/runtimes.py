"""Runs exported agents in the runtimes of their formats."""

import importlib


def load(path, format):
    """Returns the function of an exported agent, arrays in and out."""
    return {"onnx": _onnx, "tf_saved_model": _saved_model}[format](path)


def _onnx(path):
    session = importlib.import_module("onnxruntime").InferenceSession(path)
    names = [output.name for output in session.get_outputs()]
    return lambda inputs: dict(
        zip(names, session.run(None, inputs), strict=True)
    )


def _saved_model(path):
    import tensorflow as tf

    model = tf.saved_model.load(path)

    def run(inputs):
        inputs = {name: tf.constant(value) for name, value in inputs.items()}
        return {k: v.numpy() for k, v in model.serve(inputs).items()}

    return run
