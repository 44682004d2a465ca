import importlib
import types

import agents
import gymnasium
import numpy as np
import pytest
import scripted

import keras_dreamer as kd

spaces = gymnasium.spaces
# Minari warns of every argument of `create_dataset` that is left out.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:minari")

OBSERVATION = spaces.Dict(
    position=spaces.Box(-np.inf, np.inf, (3,)),
    wide=spaces.Box(-5, 5, (2,), np.float64),
    reward=spaces.Box(-1, 1, ()),
    arm=spaces.Dict(hand=spaces.Discrete(3, start=5)),
    pair=spaces.Tuple([spaces.MultiBinary(4), spaces.MultiDiscrete([3, 2])]),
)
ACTION = spaces.Tuple(
    [
        spaces.Box(-2, 6, (2,)),
        spaces.Dict(gear=spaces.Discrete(4, start=-1)),
    ]
)


@pytest.fixture
def minari(tmp_path, monkeypatch):
    pytest.importorskip("h5py")
    pytest.importorskip("PIL")
    found = pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    return found


def make_replay(small, observation=OBSERVATION, action=ACTION, streams=2):
    envs = small.envs(streams, observation, action)
    return kd.replay.Replay(small.Config(), envs, dtype="float32")


def random_steps(replay, rows, seed, is_terminal):
    """Returns the rows of an episode with random entries of all spaces."""
    rng = np.random.default_rng(seed)
    steps = {}
    for group in ("observation", "action"):
        space = getattr(replay, f"{group}_space")
        leaves = kd.spaces.leaves(space, group)
        steps[group] = agents.random_values(leaves, rng, (rows,))
    for value in steps["action"].values():
        if value.dtype.kind == "f":
            np.clip(value, -1, 1, out=value)
        value[-1] = 0
    index = np.arange(rows)
    reward = rng.standard_normal(rows).astype("float32")
    reward[0] = 0
    return {
        **steps,
        "reward": reward,
        "is_first": index == 0,
        "is_last": index == rows - 1,
        "is_terminal": (index == rows - 1) & is_terminal,
    }


def assert_same_rows(actual, expected):
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        if isinstance(value, dict):
            assert_same_rows(actual[name], value)
        else:
            assert actual[name].dtype == value.dtype
            np.testing.assert_allclose(actual[name], value, atol=1e-6)


def test_replay_to_minari_to_replay(small, minari):
    replay = make_replay(small)
    episodes = [
        random_steps(replay, rows, rows, is_terminal=rows % 2 == 1)
        for rows in (7, 2, 4, 5)
    ]
    for steps in episodes:
        replay.add_episode(steps)
    kd.replay.to_minari(replay, "tests/spaces-v0", description="Random rows.")
    loaded = kd.replay.from_minari(
        "tests/spaces-v0", small.Config(), dtype="float32"
    )
    assert loaded.observation_space == OBSERVATION
    assert loaded.action_space == ACTION
    expected = list(replay.episodes())
    found = list(loaded.episodes())
    assert len(found) == len(expected) == 4
    for one, other in zip(found, expected, strict=True):
        assert_same_rows(one, other)


def test_what_minari_holds_by_hand(small, minari):
    replay = make_replay(small, spaces.Box(-9, 9, (1,)), spaces.Box(0, 8, (1,)))
    replay.add_episode(
        {
            "observation": {"observation": [[1.0], [2.0], [3.0]]},
            # Samples are not bounded; the last one stands for no action.
            "action": {"action": [[-0.5], [7.0], [0.0]]},
            "reward": [0.0, 10.0, 20.0],
            "is_first": [True, False, False],
            "is_last": [False, False, True],
            "is_terminal": [False, False, True],
        }
    )
    dataset = kd.replay.to_minari(replay, "tests/hand-v3", author="A. U. Thor")
    assert (dataset.total_episodes, dataset.total_steps) == (1, 2)
    assert dataset.storage.metadata["author"] == {"A. U. Thor"}
    assert "keras_dreamer" in dataset.storage.metadata["algorithm_name"]
    [episode] = dataset.iterate_episodes()
    assert episode.observations.tolist() == [[1], [2], [3]]
    assert episode.actions.tolist() == [[2], [8]]
    assert episode.rewards.tolist() == [10, 20]
    assert episode.terminations.tolist() == [False, True]
    assert episode.truncations.tolist() == [False, False]


def collected(minari):
    """Returns a dataset that Minari recorded, and the same steps by hand."""
    pytest.importorskip("jax")  # Minari's collector needs it.
    env = minari.DataCollector(gymnasium.make("CartPole-v1"))
    rng = np.random.default_rng(0)
    rows = []
    for episode in range(3):
        observation, _ = env.reset(seed=episode)
        rows.append([observation, 0, 0.0, False])
        ended = False
        while not ended:
            action = int(rng.integers(2))
            rows[-1][1] = action
            observation, reward, terminal, cut, _ = env.step(action)
            ended = terminal or cut
            rows.append([observation, 0, reward, terminal])
    dataset = env.create_dataset("cartpole/random-v0")
    env.close()
    env._tmp_dir.cleanup()
    return dataset, rows


# Its collector leaves temporary folders to the garbage collector.
@pytest.mark.filterwarnings("ignore:Implicitly cleaning up:ResourceWarning")
def test_rows_of_a_recorded_dataset(small, minari):
    dataset, rows = collected(minari)
    replay = kd.replay.from_minari(dataset, small.Config(), dtype="float32")
    found = list(replay.episodes())
    assert len(found) == 3

    def joined(group, key=None):
        values = [e[group] if key is None else e[group][key] for e in found]
        return np.concatenate(values)

    observation, action, reward, terminal = zip(*rows, strict=True)
    np.testing.assert_array_equal(
        joined("observation", "observation"), np.stack(observation)
    )
    np.testing.assert_array_equal(joined("action", "action"), action)
    np.testing.assert_array_equal(joined("reward"), reward)
    np.testing.assert_array_equal(joined("is_terminal"), terminal)


def test_a_run_is_recorded(small, minari):
    envs = scripted.make_scripted(2)
    puppets = small.Config(deter=2, stoch=1, classes=7)  # Its latents' sizes.
    replay = kd.replay.Replay(puppets, envs)
    driver = kd.Driver(envs, scripted.Puppet(envs), replay)
    while driver.step < 60:
        driver.advance()
    kd.replay.to_minari(replay, "tests/scripted-v0")
    loaded = kd.replay.from_minari("tests/scripted-v0", puppets)
    assert len(list(loaded.episodes())) == len(driver.episodes) > 10
    returns = [float(e["reward"].sum()) for e in loaded.episodes()]
    assert sorted(returns) == sorted(e.episode_return for e in driver.episodes)


def episode_of(rows=3, **changes):
    """Returns an episode as Minari's `EpisodeData` has it."""
    fields = {
        "id": 4,
        "observations": np.zeros((rows, 1), "float32"),
        "actions": np.zeros((rows - 1, 1), "float32"),
        "rewards": np.zeros(rows - 1),
        "terminations": np.zeros(rows - 1, bool),
        "truncations": np.zeros(rows - 1, bool),
    }
    return types.SimpleNamespace(**{**fields, **changes})


def dataset_of(episode, action=None):
    return types.SimpleNamespace(
        observation_space=spaces.Box(-9, 9, (1,)),
        action_space=action or spaces.Box(-1, 1, (1,)),
        iterate_episodes=lambda: iter([episode]),
    )


def load(small, *args):
    return kd.replay.from_minari(
        dataset_of(*args), small.Config(), dtype="float32"
    )


@pytest.mark.skipif(agents.BACKEND == "jax", reason="compiles for long")
def test_an_agent_learns_from_a_dataset():
    config = scripted.tiny_config()
    dataset = dataset_of(episode_of(rows=40))
    replay = kd.replay.from_minari(dataset, config)
    model = kd.Dreamer(replay.observation_space, replay.action_space, config)
    agents.quick_compile(model)
    history = model.fit(
        kd.replay.ReplayDataset(replay), steps_per_epoch=2, verbose=0
    )
    assert np.isfinite(history.history["loss"]).all()
    # Latents that were zeros are those of the updates.
    assert replay.sample(8)["context"]["deter"].any()


def test_an_episode_without_an_end_is_cut(small):
    [episode] = load(small, episode_of()).episodes()
    assert episode["is_last"].tolist() == [False, False, True]
    assert not episode["is_terminal"].any()


@pytest.mark.parametrize(
    "changes,message",
    [
        (
            {"observations": np.zeros((2, 1))},
            "2 rows of observation/observation and 2 rewards in episode 4",
        ),
        ({"rewards": [0.0, np.nan]}, r"reward=nan at step 1 of episode 4.*fil"),
        (
            {"observations": np.array([[0.0], [np.inf], [0.0]])},
            r"observation/observation=\[inf\] at step 1",
        ),
        ({"actions": np.array([[np.inf], [0.0]])}, r"action/action=\[inf\]"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_bad_episodes_are_refused(small, changes, message):
    with pytest.raises(ValueError, match=message):
        load(small, episode_of(**changes))


def test_what_is_not_available_may_be_minus_infinity(small):
    observations = np.array([[0.0], [-np.inf], [0.0]])
    [episode] = load(small, episode_of(observations=observations)).episodes()
    assert episode["observation"]["observation"][1] == -np.inf


def test_other_action_bounds_are_refused(small):
    replay = make_replay(
        small, spaces.Box(-9, 9, (1,)), spaces.Box(-2, 2, (1,))
    )
    with pytest.raises(ValueError, match="action space.*from_minari"):
        kd.replay.add_minari(replay, dataset_of(episode_of()))


def test_without_minari_the_extra_is_named(monkeypatch):
    def missing(name):
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(ImportError, match=r"keras-dreamer\[minari\]"):
        kd.replay.add_minari(None, "tests/none-v0")
