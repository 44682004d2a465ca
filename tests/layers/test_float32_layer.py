import keras
import numpy as np
import pytest
from helpers import to_numpy
from keras import ops

from keras_dreamer.layers.float32_layer import Float32Layer
from keras_dreamer.layers.mlp import linear


class Pair(Float32Layer):
    """Returns a dense layer's outputs and their double, in float32."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense = linear(3)

    def build(self, input_shape):
        self.dense.build(input_shape)

    def named_layers(self):
        return {"dense": self.dense}

    def apply(self, tensors, inputs):
        x = ops.matmul(inputs, tensors["dense"]["kernel"])
        x = ops.cast(x, "float32")
        return {"one": x, "two": (2 * x,)}

    def compute_output_shape(self, input_shape):
        shape = (*input_shape[:-1], 3)
        return {"one": shape, "two": (shape,)}


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_keras_is_told_float32(policy):
    keras.config.set_dtype_policy(policy)
    inputs = keras.Input((4,))
    outputs = Pair()(inputs)
    assert outputs["one"].shape == outputs["two"][0].shape == (None, 3)
    assert outputs["one"].dtype == outputs["two"][0].dtype == "float32"


def test_the_next_layer_sees_what_was_promised():
    keras.config.set_dtype_policy("mixed_bfloat16")
    inputs = keras.Input((4,))
    pair = Pair()
    total = keras.layers.Add(dtype="float32")(
        [pair(inputs)["one"], pair(inputs)["two"][0]]
    )
    model = keras.Model(inputs, total)
    x = np.ones((2, 4), "float32")
    np.testing.assert_allclose(
        to_numpy(model(x)), 3 * to_numpy(pair(x)["one"]), rtol=1e-6
    )
