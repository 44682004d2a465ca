import gymnasium
import numpy as np
import pytest

from keras_dreamer.envs.make import make
from keras_dreamer.envs.sources import builder
from keras_dreamer.envs.sources import is_instance

dm_env = pytest.importorskip("dm_env")
specs = dm_env.specs


class Catch(dm_env.Environment):
    """A `dm_env` of one's own, with nested specs; ends in three steps."""

    def __init__(self, discount=0.0):
        self.discount = discount
        self.random_state = np.random.RandomState(0)
        self.actions = []

    def observation_spec(self):
        ball = specs.Array((2,), float)
        return {"board": {"ball": ball, "row": specs.DiscreteArray(4)}}

    def action_spec(self):
        return specs.BoundedArray((1,), "float32", -2, 2)

    def reset(self):
        self.count = 0
        return dm_env.restart(self._observe())

    def step(self, action):
        self.count += 1
        self.actions.append(action)
        if self.count < 3:
            return dm_env.transition(1.0, self._observe())
        last = dm_env.StepType.LAST
        return dm_env.TimeStep(last, 2.0, self.discount, self._observe())

    def _observe(self):
        ball = self.random_state.uniform(size=2)
        return {"board": {"ball": ball, "row": self.count}}


def record(env, **kwargs):
    envs = make(env, 1, seed=3, **kwargs)
    rows = [envs.reset()[0]]
    rows += [envs.step(np.full((1, 1), 0.5, "float32")) for _ in range(4)]
    envs.close()
    return rows


def test_dm_env_as_instance_class_and_function():
    expected = record(Catch)
    assert expected[0]["board"]["ball"].dtype == "float32"
    assert expected[2][0]["board"]["row"].tolist() == [2]
    rewards = [row[1].tolist() for row in expected[1:]]
    assert rewards == [[1], [1], [2], [0]]  # The last one is the reset.
    for env in (lambda: Catch(), Catch()):
        np.testing.assert_equal(record(env), expected)
    np.testing.assert_equal(record(lambda: Catch(), mode="process"), expected)


@pytest.mark.parametrize("discount", [0.0, 1.0])
def test_dm_env_terminates_where_the_discount_is_zero(discount):
    rows = record(Catch, discount=discount)
    ends = [(bool(row[2][0]), bool(row[3][0])) for row in rows[1:]]
    terminates = discount == 0
    assert ends[2] == (terminates, not terminates)
    assert ends[0] == ends[1] == ends[3] == (False, False)


def test_dm_env_with_lists_and_text():
    class Pair(Catch):
        def observation_spec(self):
            return [specs.Array((2,), float), specs.Array((), bool)]

        def action_spec(self):
            return {"a/b": (super().action_spec(), specs.DiscreteArray(3))}

        def _observe(self):
            return [np.ones(2), True]

    instance = Pair()
    envs = make(instance)
    assert envs.reset()[0][1].tolist() == [True]
    envs.step({"a_b": (np.ones((1, 1), "float32"), np.array([2]))})
    [action] = instance.actions
    assert action["a/b"][0].tolist() == [1] and action["a/b"][1] == 2

    class Talking(Catch):
        def observation_spec(self):
            return {"x": specs.Array((), float), "word": specs.StringArray(())}

    with pytest.raises(ValueError, match="observation entry 'word'"):
        make(Talking)


def test_instances_serve_alone():
    env = gymnasium.make("CartPole-v1")
    assert is_instance(env) and is_instance(Catch())
    assert not is_instance(Catch) and not is_instance("gym:CartPole-v1")
    assert make(env).reset()[0].shape == (1, 4)
    for kwargs in (
        {"num_envs": 2},
        {"mode": "process"},
        {"on_env_error": "restart"},
    ):
        [(name, value)] = kwargs.items()
        words = rf"'{name}': '?{value}.*pass `lambda: MyEnv\(...\)`"
        with pytest.raises(ValueError, match=words):
            make(Catch(), **kwargs)


def pettingzoo_class(base):
    """Returns a class that looks derived from one of PettingZoo's."""
    module = "pettingzoo.utils.env"
    return type("Chess", (type(base, (), {"__module__": module}),), {})


@pytest.mark.parametrize("base", ["AECEnv", "ParallelEnv"])
def test_pettingzoo_is_refused_with_the_reason_and_the_way_out(base):
    chess = pettingzoo_class(base)
    for env in (chess, chess(), lambda: chess()):
        with pytest.raises(ValueError, match="one agent.*Chess.*Wrap it in"):
            make(env, 2)


def test_names_and_functions_build_without_the_seed():
    assert builder("gym:CartPole-v1")(seed=3).spec.id == "CartPole-v1"
    env = builder(lambda discount: Catch(discount))(seed=3, discount=0.5)
    assert env._env.discount == 0.5
