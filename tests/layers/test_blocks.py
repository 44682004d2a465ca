import numpy as np
import numpy_reference as reference
import pytest
from backend_tools import evaluate
from helpers import to_numpy
from keras import ops

from keras_dreamer.layers import blocks as module
from keras_dreamer.layers.blocks import Blocks
from keras_dreamer.layers.blocks import block_dense
from keras_dreamer.layers.functional import norm_silu

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4)).astype("float32")


@pytest.fixture(params=[True, False], ids=["apart", "batched"])
def blocks(request, monkeypatch):
    """Both ways to compute, on every device."""
    monkeypatch.setattr(module, "blocks_apart", lambda: request.param)
    return Blocks(2, rows=128)


def test_few_rows_are_one_batched_product(monkeypatch):
    monkeypatch.setattr(module, "blocks_apart", lambda: True)
    assert len(Blocks(2, rows=1024).cut(X)) == 2
    assert [part.shape for part in Blocks(2, rows=16).cut(X)] == [(2, 3, 2)]


def test_block_dense_matches_hand_computed_values():
    weights = {
        "kernel": ops.convert_to_tensor([[[2.0]], [[10.0]]]),
        "bias": ops.convert_to_tensor([0.5, 0.25]),
    }
    y = block_dense(weights, ops.convert_to_tensor([[1.0, 3.0]]))
    np.testing.assert_array_equal(to_numpy(y), [[2.5, 30.25]])


@pytest.mark.parametrize("times", [1, 50], ids=["few rows", "many rows"])
def test_block_dense_matches_a_loop(blocks, times):
    kernel = RNG.normal(size=(2, 2, 3)).astype("float32")
    bias = RNG.normal(size=6).astype("float32")
    y = evaluate(
        lambda k, b, x: block_dense({"kernel": k, "bias": b}, x),
        kernel,
        bias,
        np.tile(X, (times, 1, 1)),
    )
    weights = {"x/kernel": kernel, "x/bias": bias}
    for row in range(3):
        expected = reference.block_dense(weights, "x", X[row])
        np.testing.assert_allclose(
            y[:, row], np.tile(expected, (times, 1)), rtol=1e-5, atol=1e-6
        )


def test_join_undoes_cut(blocks):
    x = ops.convert_to_tensor(RNG.normal(size=(5, 4)).astype("float32"))
    joined = blocks.join(blocks.cut(x))
    np.testing.assert_array_equal(to_numpy(joined), to_numpy(x))


def test_the_norm_is_over_all_blocks(blocks):
    scale = RNG.normal(size=4).astype("float32")

    def both(x, scale):
        parts = blocks.norm_silu(blocks.cut_vector(scale), blocks.cut(x))
        return blocks.join(parts), norm_silu({"scale": scale}, x)

    cut, whole = evaluate(both, X, scale)
    np.testing.assert_allclose(cut, whole, rtol=1e-5, atol=1e-7)
