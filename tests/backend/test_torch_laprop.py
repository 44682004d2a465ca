import keras
import numpy as np
import pytest
from helpers import to_numpy

torch = pytest.importorskip("torch")
if keras.backend.backend() != "torch":
    pytest.skip("another backend is active", allow_module_level=True)

from keras_dreamer.optimizers.laprop import LaProp  # noqa: E402

SHAPES = [(3, 4), (4,), (2, 3, 2), ()]


def variables_and_optimizer(dtypes, **arguments):
    rng = np.random.default_rng(0)
    variables = [
        keras.Variable(rng.normal(size=shape), dtype=dtype)
        for shape, dtype in zip(SHAPES, dtypes, strict=True)
    ]
    optimizer = LaProp(0.1, warmup=2, **arguments)
    optimizer.build(variables)
    return variables, optimizer


@pytest.mark.parametrize("agc", [0.3, None])
@pytest.mark.parametrize(
    "dtypes",
    [["float32"] * 4, ["float32", "bfloat16", "float64", "float16"]],
    ids=["float32", "mixed"],
)
def test_is_the_update_of_one_variable_after_another(agc, dtypes):
    together, optimizer = variables_and_optimizer(dtypes, agc=agc)
    alone, other = variables_and_optimizer(dtypes, agc=agc)
    rng = np.random.default_rng(1)
    for _ in range(4):
        gradients = [
            torch.as_tensor(rng.normal(size=v.shape)).to(v.value.dtype)
            for v in together
        ]
        optimizer.apply(gradients, together)
        with torch.no_grad():
            for gradient, variable in zip(gradients, alone, strict=True):
                other.update_step(gradient, variable, 0.1)
        other.iterations.assign_add(1)
    for x, y, dtype in zip(together, alone, dtypes, strict=True):
        rtol = 1e-6 if dtype in ("float32", "float64") else 1e-2
        np.testing.assert_allclose(
            *(to_numpy(keras.ops.cast(v, "float64")) for v in (x, y)), rtol
        )
    for x, y in zip(optimizer.variables[2:], other.variables[2:], strict=True):
        np.testing.assert_allclose(to_numpy(x), to_numpy(y), 1e-5, 1e-7)


def test_gradients_stay_as_they_are():
    variables, optimizer = variables_and_optimizer(["float32"] * 4)
    gradients = [torch.ones(shape) for shape in SHAPES]
    optimizer.apply(gradients, variables)
    for gradient in gradients:
        assert (gradient == 1).all()
