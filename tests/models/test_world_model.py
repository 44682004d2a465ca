"""What observing computes, seen through `Dreamer.loss_terms`."""

import copy

import agents
import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("quick_backend")

WORLD_TERMS = ("rec/position", "rew", "con", "dyn", "rep")


@pytest.fixture(scope="module")
def model():
    return agents.make_random_agent()


@pytest.fixture
def batch(model):
    return agents.random_batch(model)


def observed(model, batch):
    """Returns the terms of the world model and the latents as arrays."""
    results = agents.evaluate(model, batch, training=False)
    terms = {name: results.terms[name] for name in WORLD_TERMS}
    return {**terms, **results.latents}


def changed_steps(before, after):
    """Returns where any value of a `(B, T, ...)` array differs."""
    rows, steps = before["dyn"].shape
    differs = np.zeros((rows, steps), bool)
    for name in before:
        apart = np.asarray(before[name]) != np.asarray(after[name])
        differs |= apart.reshape(rows, steps, -1).any(axis=-1)
    return differs


def test_an_episode_start_forgets_the_context(model, batch):
    other = copy.deepcopy(batch)
    other["context"]["deter"] = -batch["context"]["deter"]
    differs = changed_steps(observed(model, batch), observed(model, other))
    # Row 2 ends in the context step; its first trained step is a start.
    first = np.asarray(batch["is_first"])[:, 1:]
    forgotten = np.cumsum(first, axis=1) > 0
    assert not differs[forgotten].any()
    assert differs[~forgotten].any()


def test_an_action_shows_one_step_later(model, batch):
    key = next(k for k, leaf in model.action_leaves.items() if leaf.discrete)
    other = copy.deepcopy(batch)
    # The action of trained step 1, taken before step 2 of row 0 is observed.
    row, step = 2, 2
    classes = model.action_leaves[key].classes
    action = other["action"][key]
    action[row, step] = (action[row, step] + 1) % classes
    differs = changed_steps(observed(model, batch), observed(model, other))
    assert not differs[:row].any()
    assert not differs[row, :step].any()
    assert differs[row, step]


def test_the_last_action_has_no_effect(model, batch):
    other = copy.deepcopy(batch)
    for action in other["action"].values():
        action[:, -1] = 0
    differs = changed_steps(observed(model, batch), observed(model, other))
    assert not differs.any()


def test_a_row_does_not_see_the_others(model, batch):
    other = copy.deepcopy(batch)
    for values in other["observation"].values():
        values[0] = values[1]
    differs = changed_steps(observed(model, batch), observed(model, other))
    assert differs[0].any()
    assert not differs[1:].any()
