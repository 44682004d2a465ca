"""Hypothesis strategies for spaces, however nested."""

import hypothesis.strategies as st
import numpy as np
from gymnasium import spaces

INTEGERS = ["int8", "uint8", "int16", "uint32", "int64"]


@st.composite
def boxes(draw):
    dtype = np.dtype(
        draw(st.sampled_from([*INTEGERS, "float16", "float32", "float64"]))
    )
    shape = tuple(draw(st.lists(st.integers(1, 3), max_size=3)))
    size = int(np.prod(shape))
    numbers = st.integers(0, 100) if dtype.kind in "iu" else st.floats(-9, 9)
    ends = draw(
        st.lists(st.tuples(numbers, numbers), min_size=size, max_size=size)
    )
    low = np.array([min(pair) for pair in ends], "float64")
    high = np.array([max(pair) for pair in ends], "float64")
    if dtype.kind != "u":
        unbounded = draw(st.lists(st.booleans(), min_size=size, max_size=size))
        low[unbounded] = -np.inf
    low, high = low.reshape(shape), high.reshape(shape)
    if dtype.kind == "f":
        low, high = low.astype(dtype), high.astype(dtype)
    return spaces.Box(low, high, dtype=dtype.type)


def leaf_spaces():
    counts = st.lists(st.integers(1, 5), min_size=1, max_size=4)
    return st.one_of(
        boxes(),
        st.builds(
            spaces.Discrete,
            st.integers(1, 9),
            start=st.integers(-5, 5),
        ),
        counts.map(spaces.MultiDiscrete),
        counts.map(
            lambda nvec: spaces.MultiDiscrete([nvec, nvec], start=[nvec, nvec])
        ),
        st.integers(1, 5).map(spaces.MultiBinary),
        counts.map(spaces.MultiBinary),
        st.just(spaces.Box(0, 1, (2,), dtype=np.bool_)),
    )


def nested_spaces():
    return st.recursive(
        leaf_spaces(),
        lambda children: st.one_of(
            st.dictionaries(
                st.text("abc", min_size=1), children, min_size=1, max_size=3
            ).map(spaces.Dict),
            st.lists(children, min_size=1, max_size=3).map(spaces.Tuple),
        ),
        max_leaves=4,
    )
