import numpy as np
import pytest

from keras_dreamer.envs.environments import spread
from keras_dreamer.envs.make import make


def test_seeds_are_distinct_and_do_not_depend_on_the_count():
    assert len(set(spread(0, 100))) == 100
    assert spread(7, 3) == spread(7, 100)[:3]
    assert not set(spread(0, 100)) & set(spread(1, 100))


def test_first_reset_uses_the_seeds_and_later_ones_go_on():
    first, second = (
        make("gym:Pendulum-v1", 2, seed=5),
        make("gym:Pendulum-v1", 2, seed=5),
    )
    start, again = first.reset()[0], first.reset()[0]
    np.testing.assert_array_equal(second.reset()[0], start)
    np.testing.assert_array_equal(second.reset()[0], again)
    assert not np.array_equal(start, again)
    assert not np.array_equal(start[0], start[1])


def test_reset_with_a_seed_equals_making_with_it():
    envs = make("gym:Pendulum-v1", 2, seed=0)
    expected = make("gym:Pendulum-v1", 2, seed=5).reset()[0]
    np.testing.assert_array_equal(envs.reset(seed=5)[0], expected)
    np.testing.assert_array_equal(envs.reset(seed=spread(5, 2))[0], expected)


def test_no_seed_differs_from_run_to_run():
    assert make("gym:Pendulum-v1", seed=None).seeds != (
        make("gym:Pendulum-v1", seed=None).seeds
    )


@pytest.mark.parametrize("num_envs", [1, 3])
def test_attributes(num_envs):
    envs = make("gym:CartPole-v1", num_envs, action_repeat=2)
    assert envs.num_envs == num_envs == len(envs.seeds)
    assert envs.action_repeat == 2
    assert envs.single_observation_space.shape == (4,)
    assert envs.single_action_space.n == 2
