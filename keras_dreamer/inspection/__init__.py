"""What the world model knows: numbers to look at a trained agent with."""

from keras_dreamer.inspection.latents import LatentUsage
from keras_dreamer.inspection.latents import latent_usage
from keras_dreamer.inspection.open_loop import OpenLoop
from keras_dreamer.inspection.open_loop import open_loop
from keras_dreamer.inspection.returns import Returns
from keras_dreamer.inspection.returns import compare_returns

__all__ = [
    "LatentUsage",
    "OpenLoop",
    "Returns",
    "compare_returns",
    "latent_usage",
    "open_loop",
]
