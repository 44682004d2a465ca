import agents
import numpy as np
import pytest
from helpers import to_numpy
from keras import ops
from keras import tree

from keras_dreamer.inspection import compare_returns
from keras_dreamer.inspection import returns as module
from keras_dreamer.inspection.returns import discounted
from keras_dreamer.losses.returns import lambda_returns


def test_discounted_by_hand():
    # No end: 1 + 0.5 * (2 + 0.5 * 8) = 4, 2 + 0.5 * 8 = 6.
    reward = np.array([[9.0, 1.0, 2.0]] * 3)
    value = np.array([[7.0, 6.0, 8.0]] * 3)
    last = np.array([[0, 0, 0], [0, 1, 0], [0, 0, 1]])
    terminal = np.array([[0, 0, 0], [0, 0, 0], [0, 0, 1]])
    # A time limit at step 1: 1 + 0.5 * 6 = 4. A terminal at step 2: 2, then
    # 1 + 0.5 * 2 = 2.
    np.testing.assert_allclose(
        discounted(reward, last, terminal, value, 0.5),
        [[4.0, 6.0], [4.0, 6.0], [2.0, 2.0]],
    )


def test_discounted_is_the_lambda_return_without_bootstrap():
    rng = np.random.default_rng(0)
    reward, value = rng.normal(size=(2, 3, 6)).astype("float32")
    last = rng.random((3, 6)) < 0.3
    terminal = last & (rng.random((3, 6)) < 0.5)
    last, terminal = (x.astype("float32") for x in (last, terminal))
    expected = lambda_returns(reward, terminal, last, value, 0.9, 1.0)
    np.testing.assert_allclose(
        discounted(reward, last, terminal, value, 0.9),
        to_numpy(ops.convert_to_tensor(expected)),
        rtol=1e-5,
        atol=1e-6,
    )


@pytest.fixture(scope="module")
def compared(quick_backend):
    # One imagined step: then an update logs the mean of these returns.
    model = agents.make_random_agent(imag_length=1)
    batch = agents.random_batch(model)
    with pytest.MonkeyPatch.context() as patch:
        # Without noise all but the last step of a window are a shorter window.
        patch.setattr(
            module, "_noise", lambda model, *size: model.mode_noise(*size[:2])
        )
        return model, batch, compare_returns(model, batch)


def test_shapes_and_ends(compared):
    _, _, returns = compared
    assert returns.imagined.shape == returns.real.shape == (3, 5)
    # The last steps of episodes are 2 - 1 of row 0 and 4 - 1 of row 1.
    expected = np.ones((3, 5), bool)
    expected[0, 1] = expected[1, 3] = False
    np.testing.assert_array_equal(returns.valid, expected)


def test_what_is_estimated(compared):
    model, _, returns = compared
    discount = model.config.discount
    # Row 0 is terminal in trained step 1; its next episode is cut in step 5.
    powers = discount ** np.arange(5, 0, -1)
    np.testing.assert_allclose(returns.estimated[0, 0], 0.0)
    np.testing.assert_allclose(returns.estimated[0, 1:], powers[1:], rtol=1e-5)
    np.testing.assert_allclose(returns.estimated[2], powers, rtol=1e-5)


def test_real_returns_follow_the_rewards(compared):
    _, batch, returns = compared
    # One step before the terminal only its reward is left.
    np.testing.assert_allclose(
        returns.real[0, 0], batch["reward"][0, 2], rtol=1e-6
    )


def test_imagined_returns_are_those_of_the_update(compared):
    model, batch, returns = compared
    shorter = {k: v for k, v in batch.items() if k != "context"}
    shorter = tree.map_structure(lambda x: x[:, :-1], shorter)
    shorter["context"] = batch["context"]
    terms = agents.evaluate(
        model, shorter, model.mode_noise(3, 5), training=False
    )
    assert returns.imagined.mean() == pytest.approx(
        terms.metrics["tar"], rel=1e-4
    )


def test_noise_is_that_of_an_update():
    model = agents.make_agent()
    noise = module._noise(model, 3, 6, np.random.default_rng(0))
    shapes = tree.map_structure(np.shape, noise)
    assert shapes == tree.map_structure(np.shape, agents.random_noise(model))
    # Uniform for classes, normal for numbers.
    assert noise["action"]["fire"].min() >= 0 > noise["action"]["move"].min()
