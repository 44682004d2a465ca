import agents
import gymnasium
import keras
import numpy as np
import pytest
from scripted import Puppet
from scripted import make_scripted

import keras_dreamer as kd

spaces = gymnasium.spaces
STARTS = np.array([[1, 1], [0, 0], [0, 1], [0, 0]], bool)


@pytest.fixture(scope="module")
def model():
    return agents.make_agent(**agents.SHALLOW)


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    agents.quick_compile(model)
    path = tmp_path_factory.mktemp("policy") / "agent.keras"
    model.save(path)
    return path


def observe(model, count, seed=0):
    space = gymnasium.vector.utils.batch_space(model.observation_space, count)
    space.seed(seed)
    return space.sample()


def assert_equal(one, two):
    keras.tree.map_structure(np.testing.assert_array_equal, one, two)


@pytest.mark.parametrize("deterministic", [False, True])
def test_acts_as_the_saved_agent_does(model, saved, deterministic):
    policy = kd.Policy.load(saved)
    mine = theirs = None
    for step, starts in enumerate(STARTS):
        observation = observe(model, 2, step)
        actual, mine = policy.predict(observation, mine, starts, deterministic)
        expected, theirs = model.act(observation, theirs, starts, deterministic)
        assert_equal(actual, expected)
        assert_equal(mine, theirs)
    assert policy.action_space.contains(
        keras.tree.map_structure(lambda x: x[0], actual)
    )


def test_no_optimizer_is_loaded(saved):
    model = kd.Policy.load(saved).model
    assert not model.compiled and getattr(model, "optimizer", None) is None


def test_one_observation_gives_one_action(model, saved):
    one, two = kd.Policy.load(saved), kd.Policy.load(saved)
    batch = observe(model, 1)
    single = {key: value[0] for key, value in batch.items()}
    expected, their_state = two.predict(batch, deterministic=True)
    actual, state = one.predict(single, deterministic=True)
    assert_equal(state, their_state)
    assert_equal(actual, {key: value[0] for key, value in expected.items()})
    assert model.action_space.contains(actual)


def puppet_policy(count=1):
    # The Puppet acts (steps since the start + 1) / 4, in bounds of [-2, 2].
    return kd.Policy(Puppet(make_scripted(count)))


def test_starts_are_all_none_or_as_told():
    policy = puppet_policy(2)
    zeros = np.zeros((2, 3), "float32")
    action, state = policy.predict(zeros)
    assert action.tolist() == [[0.5], [0.5]]
    action, state = policy.predict(zeros, state)
    assert action.tolist() == [[1.0], [1.0]]
    action, state = policy.predict(zeros, state, [False, True])
    assert action.tolist() == [[1.5], [0.5]]
    # Without a state there is nothing to go on with.
    action, _ = policy.predict(zeros, None, [False, False])
    assert action.tolist() == [[0.5], [0.5]]


def test_a_single_environment_may_start_with_a_plain_bool():
    policy = puppet_policy()
    _, state = policy.predict([0.0, 1.0, 2.0])
    action, state = policy.predict([0.0, 1.0, 2.0], state, False)
    assert action.tolist() == [1.0]
    action, _ = policy.predict([0.0, 1.0, 2.0], state, True)
    assert action.tolist() == [0.5]


def evaluate_policy(model, env, episodes):
    """Loops as stable-baselines3's function of that name does."""
    observations, _ = env.reset()
    states, starts = None, np.ones(env.num_envs, bool)
    running, returns = np.zeros(env.num_envs), []
    while len(returns) < episodes:
        actions, states = model.predict(
            observations,
            state=states,
            episode_start=starts,
            deterministic=True,
        )
        observations, rewards, terminated, truncated, _ = env.step(actions)
        running += rewards
        starts = terminated | truncated
        returns += running[starts].tolist()
        running[starts] = 0.0
    return returns


def test_a_loop_of_stable_baselines3s_shape_scores_the_same():
    env = gymnasium.vector.SyncVectorEnv(
        [lambda: gymnasium.make("Pendulum-v1", max_episode_steps=20)],
        autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP,
    )
    model = agents.make_agent(
        env.single_observation_space, env.single_action_space, **agents.SHALLOW
    )
    policy = kd.Policy(model)
    env.reset(seed=3)
    first = evaluate_policy(policy, env, 3)
    assert len(set(first)) == 3
    env.reset(seed=3)
    scores = kd.evaluate(policy, env, 3, deterministic=True)
    assert scores.returns == pytest.approx(first)


def test_evaluate_policy_of_stable_baselines3_runs_unchanged():
    evaluation = pytest.importorskip("stable_baselines3.common.evaluation")
    monitor = pytest.importorskip("stable_baselines3.common.monitor")
    env = monitor.Monitor(gymnasium.make("CartPole-v1", max_episode_steps=20))
    model = agents.make_agent(
        env.observation_space, env.action_space, **agents.SHALLOW
    )
    returns, lengths = evaluation.evaluate_policy(
        kd.Policy(model), env, 4, return_episode_rewards=True
    )
    # A reward of 1 for every step.
    assert returns == lengths and len(returns) == 4 and min(lengths) > 5


def test_wrong_shapes_are_refused():
    with pytest.raises(ValueError, match=r"'observation' needs 1 batch axes"):
        puppet_policy().predict(np.zeros((1, 2, 3)))


def test_files_of_other_models_are_refused(tmp_path):
    inputs = keras.Input((2,))
    other = keras.Model(inputs, keras.layers.Dense(1)(inputs))
    other.save(tmp_path / "other.keras")
    with pytest.raises(ValueError, match="hold a `Dreamer`.*Functional.*save"):
        kd.Policy.load(tmp_path / "other.keras")
