"""Layers whose outputs are float32 under every dtype policy."""

from typing import Any

import keras

from keras_dreamer.layers.functional import FunctionalLayer
from keras_dreamer.tensor import Tensor


class Float32Layer(FunctionalLayer):
    """Layer with float32 outputs, the parameters of distributions.

    Keras expects outputs in the compute dtype from a layer that only knows
    their shapes. Distributions and losses are float32 (item 1.12).
    """

    def compute_output_spec(self, inputs: Tensor) -> Any:
        shapes = self.compute_output_shape(inputs.shape)
        return keras.tree.map_shape_structure(
            lambda shape: keras.KerasTensor(shape, "float32"), shapes
        )
