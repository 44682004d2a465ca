"""Runs exported agents in a process that has neither Keras nor the package.

    python exported.py steps.npz outputs.npz FILE...

`steps.npz` holds the inputs of step t as `t/<name>`, state excepted. A file
gets those that it asks for.
"""

import sys

import numpy as np


def load_onnx(path):
    """Returns the function of an ONNX file and its inputs' shapes."""
    import onnxruntime

    session = onnxruntime.InferenceSession(path)
    names = [output.name for output in session.get_outputs()]
    shapes = {i.name: i.shape for i in session.get_inputs()}
    types = {i.name: i.type for i in session.get_inputs()}
    dtypes = {"tensor(float)": "float32", "tensor(int32)": "int32"}
    dtypes = {name: dtypes.get(type_, "bool") for name, type_ in types.items()}

    def run(inputs):
        return dict(zip(names, session.run(None, inputs), strict=True))

    return run, shapes, dtypes


def load_saved_model(path):
    """Returns the function of a SavedModel and its inputs' shapes."""
    import tensorflow as tf

    model = tf.saved_model.load(path)
    signature = model.signatures["serving_default"]
    specs = signature.structured_input_signature[1].values()
    shapes = {spec.name: spec.shape.as_list() for spec in specs}
    dtypes = {spec.name: spec.dtype.as_numpy_dtype for spec in specs}

    def run(inputs):
        inputs = {name: tf.constant(value) for name, value in inputs.items()}
        return {k: v.numpy() for k, v in model.serve(inputs).items()}

    run.model = model  # It must not be collected.
    return run, shapes, dtypes


def act(path, steps, count):
    """Yields the outputs of all steps of a file."""
    load = load_onnx if path.endswith(".onnx") else load_saved_model
    run, shapes, dtypes = load(path)
    rows = len(steps["0/is_first"])
    state = {
        name: np.zeros((rows, *shape[1:]), dtypes[name])
        for name, shape in shapes.items()
        if name.startswith("state/")
    }
    for step in range(count):
        given = {
            name: steps[f"{step}/{name}"]
            for name in shapes
            if name not in state
        }
        outputs = run({**given, **state})
        yield outputs
        state = {name: outputs[f"next_{name}"] for name in state}


def main(steps, outputs, *paths):
    """See the module's text."""
    steps = dict(np.load(steps))
    count = 1 + max(int(name.split("/")[0]) for name in steps)
    found = {
        f"{file}/{step}/{name}": value
        for file, path in enumerate(paths)
        for step, values in enumerate(act(path, steps, count))
        for name, value in values.items()
    }
    np.savez(outputs, **found)
    assert "keras_dreamer" not in sys.modules


if __name__ == "__main__":
    main(*sys.argv[1:])
