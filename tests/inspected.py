"""What an inspected agent gives, made up."""

import types

import numpy as np

from keras_dreamer.inspection.latents import LatentUsage
from keras_dreamer.inspection.open_loop import OpenLoop
from keras_dreamer.inspection.returns import Returns
from keras_dreamer.spaces import Leaf

STEPS, CONTEXT, FUTURES = 8, 3, 5
LEAVES = {
    "x/y": Leaf("x/y", "continuous", (3,)),
    "wide": Leaf("wide", "continuous", (20,)),
    "mode": Leaf("mode", "discrete", (), (4,)),
}
RNG = np.random.default_rng(0)


def open_loop():
    lead = (FUTURES, STEPS)
    return OpenLoop(
        CONTEXT,
        {
            "x/y": RNG.normal(size=(*lead, 3)),
            "wide": RNG.normal(size=(*lead, 20)),
            "mode": np.full((*lead, 4), 0.25),
        },
        {
            "x/y": RNG.normal(size=(*lead, 3)),
            "wide": RNG.normal(size=(*lead, 20)),
            "mode": RNG.integers(4, size=lead),
        },
        RNG.normal(size=lead),
        RNG.normal(size=lead),
        np.ones(lead, bool),
    )


def make_inspected(estimated=0.0):
    real = RNG.normal(size=(2, 7))
    return types.SimpleNamespace(
        source="agent.keras on data",
        model=types.SimpleNamespace(
            observation_leaves=LEAVES,
            config=types.SimpleNamespace(imag_length=2),
        ),
        futures=open_loop(),
        windows=open_loop(),
        returns=Returns(
            real + 1, real, np.full((2, 7), estimated), np.ones((2, 7), bool)
        ),
        usage=LatentUsage(np.full((6, 4), 0.25), np.ones(6), np.ones(6)),
    )
