"""Predictions against the networks, applied step by step."""

import copy

import agents
import numpy as np
import pytest
from backend_tools import fast
from helpers import to_numpy
from keras import ops

from keras_dreamer.inspection import open_loop
from keras_dreamer.layers.inputs import concat_inputs

pytestmark = pytest.mark.usefixtures("quick_backend")

CONTEXT = 2


@pytest.fixture(scope="module")
def model():
    return agents.make_random_agent()


@pytest.fixture(scope="module")
def batch(model):
    return agents.random_batch(model)


@pytest.fixture(scope="module")
def result(model, batch):
    return open_loop(model, batch, CONTEXT)


def same(one, other):
    """Returns where the predictions of all keys agree, `(B, T)`."""
    rows, steps = one.reward.shape
    return np.all(
        [
            (one.prediction[k] == other.prediction[k])
            .reshape(rows, steps, -1)
            .all(-1)
            for k in one.prediction
        ],
        axis=0,
    )


def step_by_step(model, batch, seed=0):
    """Returns decoded keys and rewards of all steps, from a plain loop."""
    nets, config = model.networks, model.config
    rows, steps = len(batch["is_first"]), config.batch_length
    rng = np.random.default_rng(seed)
    seen = rng.random((rows, CONTEXT, config.stoch), "float32")
    ahead = rng.random(
        (steps - CONTEXT + 1, rows, config.stoch), dtype="float32"
    )

    def encode(t):
        action = {k: x[:, t] for k, x in batch["action"].items()}
        action = {k: ops.convert_to_tensor(x) for k, x in action.items()}
        return concat_inputs(nets.pol.leaves, action, "float32")

    def flat(one_hot):
        return ops.reshape(one_hot, (rows, -1))

    def run():
        deter = ops.convert_to_tensor(batch["context"]["deter"])
        index = ops.convert_to_tensor(batch["context"]["stoch"])
        stoch = flat(ops.one_hot(index, config.classes, dtype="float32"))
        keys, rewards = [], []
        for t in range(steps):  # Row t + 1 of the batch, the action of row t.
            if t < CONTEXT:
                observation = {
                    k: ops.convert_to_tensor(x[:, t + 1])
                    for k, x in batch["observation"].items()
                }
                deter, stoch = nets.dyn.observe_step(
                    nets.dyn.tensors(),
                    (deter, stoch),
                    nets.enc.apply(nets.enc.tensors(), observation),
                    encode(t),
                    ops.convert_to_tensor(batch["is_first"][:, t + 1]),
                    ops.convert_to_tensor(seen[:, t]),
                )
            else:
                deter = nets.dyn.gru(deter, stoch, encode(t))
                latents = nets.dyn.latents(
                    nets.dyn.prior(nets.dyn.tensors(), deter)
                )
                noise = ops.convert_to_tensor(ahead[t - CONTEXT])
                stoch = flat(latents.one_hot(latents.sample(noise)))
            keys.append(nets.dec(ops.concatenate([stoch, deter], -1)))
            reward = nets.rew(ops.concatenate([deter, stoch], -1))
            rewards.append(nets.rew.distribution(reward).mean())
        keys = {k: ops.stack([x[k] for x in keys], 1) for k in keys[0]}
        return keys, ops.stack(rewards, 1)

    keys, rewards = fast(run)()
    return {k: to_numpy(x) for k, x in keys.items()}, to_numpy(rewards)


def test_matches_a_loop_over_the_layers(model, batch, result):
    decoded, reward = step_by_step(model, batch)
    np.testing.assert_allclose(
        result.predicted_reward, reward, rtol=1e-3, atol=1e-4
    )
    position = np.sign(decoded["position"]) * np.expm1(
        np.abs(decoded["position"])
    )
    np.testing.assert_allclose(
        result.prediction["position"], position, rtol=1e-3, atol=1e-4
    )
    for key in ("mode", "flags"):
        weights = np.exp(decoded[key])
        probs = weights / weights.sum(-1, keepdims=True)
        np.testing.assert_allclose(
            result.prediction[key], probs, rtol=1e-3, atol=1e-4
        )


def test_truth_is_what_was_recorded(batch, result):
    for key, values in batch["observation"].items():
        np.testing.assert_array_equal(result.truth[key], values[:, 1:])
    np.testing.assert_array_equal(result.reward, batch["reward"][:, 1:])


def test_context_and_recorded_actions_count_and_nothing_else(
    model, batch, result
):
    other = copy.deepcopy(batch)
    # Row 0: what comes after the context. Row 1: the context. Row 2: the
    # action before trained step 4.
    for values in other["observation"].values():
        values[0, 1 + CONTEXT :] = values[1, 1 + CONTEXT :]
    other["observation"]["position"][1, 1 : 1 + CONTEXT] *= -30.0
    other["observation"]["mode"][1, 1 : 1 + CONTEXT] += 1
    other["observation"]["mode"] %= 5
    other["action"]["move"][2, 4] += 1.0
    changed = ~same(open_loop(model, other, CONTEXT), result)
    assert not changed[0].any()
    assert changed[1, CONTEXT:].any()
    assert not changed[2, :4].any()
    assert changed[2, 4]


def test_another_episode_is_not_valid(result):
    # Trained steps after the context that are resets: row 0 at step 2, row 1
    # at step 4. Row 2 starts anew in its context.
    expected = np.ones((3, 6), bool)
    expected[0, 2:] = expected[1, 4:] = False
    np.testing.assert_array_equal(result.valid, expected)


@pytest.mark.parametrize("context", [0, 6])
def test_context_must_leave_steps_to_predict(model, batch, context):
    with pytest.raises(ValueError, match=rf"here 5.*context={context}"):
        open_loop(model, batch, context)


def test_without_replay_context():
    observation, action, fields = agents.GOLDENS["head_nocontext"]
    model = agents.make_agent(observation, action, **fields)
    result = open_loop(model, agents.random_batch(model), 3)
    assert result.prediction["x"].shape == (3, 7, 4)
