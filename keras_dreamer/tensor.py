"""Types of tensors and of their shapes, for annotations."""

from typing import Any
from typing import TypeAlias

# Keras's operations take and return what the backend calls a tensor, and NumPy
# arrays and Keras's variables, too. These types have no base in common, and two
# of the three backends are not installed, so the name says all that is known.
Tensor: TypeAlias = Any

# `None` stands for a length that is not known yet.
Shape: TypeAlias = tuple[int | None, ...]
