"""What the world model knows: numbers to look at a trained agent with."""

from keras_dreamer.inspection.latents import latent_usage
from keras_dreamer.inspection.open_loop import open_loop
from keras_dreamer.inspection.returns import compare_returns

__all__ = ["compare_returns", "latent_usage", "open_loop"]
