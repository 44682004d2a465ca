import types

import agents
import keras
import numpy as np
import pytest

torch = pytest.importorskip("torch")
if keras.backend.backend() != "torch":
    pytest.skip("another backend is active", allow_module_level=True)

from keras_dreamer.backend.torch import device  # noqa: E402
from keras_dreamer.backend.torch import scan  # noqa: E402
from keras_dreamer.models import acting  # noqa: E402
from keras_dreamer.models.noise import acting_noise  # noqa: E402

pytestmark = pytest.mark.usefixtures("quick_backend")


def test_scan_has_a_gradient():
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    _, outputs = scan(lambda c, x: (c + x, c * x), torch.zeros(()), x, 3)
    outputs.sum().backward()
    # d sum_t (x_0 + .. + x_t-1) x_t / dx_k is the sum of all others.
    np.testing.assert_allclose(x.grad, [5, 4, 3])


def test_a_gpu_has_a_name(monkeypatch):
    names = {"cuda:0": "Tesla T4"}
    monkeypatch.setattr(torch.cuda, "get_device_name", names.get)
    for where, expected in {
        "cuda:0": "cuda:0 Tesla T4",
        "mps:0": "mps:0",
    }.items():
        tensor = types.SimpleNamespace(device=torch.device(where))
        monkeypatch.setattr(keras.ops, "zeros", lambda _, x=tensor: x)
        assert device() == expected


@pytest.fixture(scope="module")
def model():
    model = agents.make_agent(
        agents.numbers(3), agents.bounded(2), **agents.SHALLOW
    )
    model.compile()
    agents.train(model, agents.random_batch(model), updates=2)
    return model


def test_no_graph_is_left_after_an_update(model):
    for variable in model.variables + model.optimizer.variables:
        assert variable.value.grad is None
        assert variable.value.grad_fn is None
    for value in keras.tree.flatten(model.exchange.latents):
        assert value is None


def test_acting_builds_no_graph(model):
    seen = []
    policy = model.policy

    def spy(*args):
        state = policy(*args)
        seen.extend(keras.tree.flatten(state))
        return state

    model.policy = spy
    model.act(np.ones((1, 3), "float32"))
    model.policy = policy
    assert seen and not any(value.requires_grad for value in seen)
    assert torch.is_grad_enabled()


def test_the_slow_critic_wants_no_gradients(model):
    nets = model.networks
    assert not any(w.value.requires_grad for w in nets.slowval.weights)
    assert all(w.value.requires_grad for w in nets.val.weights)


def test_everything_is_made_on_the_device_of_keras():
    """Stands in for a GPU: "meta" holds no numbers and mixes with no other."""
    with keras.device("meta"):
        model = agents.make_agent(**agents.SHALLOW)
        update = model.update_terms(agents.random_batch(model))
        model.update_slow_critic(0.02)
        observation = {
            key: np.zeros((2, *leaf.shape), leaf.dtype)
            for key, leaf in model.observation_leaves.items()
        }
        noise = acting_noise(
            model.config,
            model.action_leaves,
            2,
            np.random.default_rng(0),
            False,
        )
        start = acting.initial_state(model, 2)
        state = model.policy(observation, start, np.ones(2, bool), noise)
    tensors = keras.tree.flatten([update, state])
    tensors += [variable.value for variable in model.variables]
    assert {tensor.device.type for tensor in tensors} == {"meta"}
