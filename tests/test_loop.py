"""The loop as a whole: what is stored, when updates run, what they write."""

import agents
import keras
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.vector import SyncVectorEnv
from scripted import CONTINUOUS
from scripted import Scripted
from scripted import algorithm_k
from scripted import expected_rows
from scripted import make_scripted
from scripted import scripted_envs
from scripted import tiny_config

import keras_dreamer as kd
from keras_dreamer.replay.pool import step_ids

CONFIG = tiny_config()
TRAINED = CONFIG.batch_size * CONFIG.batch_length  # 3 * 4 steps an update.
LENGTH = CONFIG.batch_length + CONFIG.replay_context


@pytest.fixture(scope="module", autouse=True)
def quick_backend():
    with agents.quick_backend():
        yield


class Policy:
    """Stands before the policy and remembers what it returned."""

    def __init__(self, policy):
        self.policy = policy
        self.returned = []

    def __call__(self, *args):
        state = self.policy(*args)
        self.returned.append(
            keras.tree.map_structure(keras.ops.convert_to_numpy, state)
        )
        return state


class Replay(kd.replay.Replay):
    """Remembers every call, and what the replay held at that time."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.calls = []

    def add_batch(self, steps, streams):
        super().add_batch(steps, streams)
        for index, stream in enumerate(streams):
            latents = {k: v[index] for k, v in steps["context"].items()}
            self.calls.append(("add", int(stream), latents))

    def sample(self, batch_size):
        held = stored_latents(self)
        batch = super().sample(batch_size)
        self.calls.append(("sample", batch, held))
        return batch

    def update(self, step_id, latents):
        super().update(step_id, latents)
        held = stored_latents(self)
        self.calls.append(("update", (step_id, latents), held))


def stored(replay):
    """Returns the rows of each stream as dicts of arrays."""
    streams = []
    for stream, count in enumerate(replay._items.rows):
        row = replay._pool.locate(step_ids(stream, np.arange(count)))
        arrays = replay._pool.arrays
        streams.append({name: array[row] for name, array in arrays.items()})
    return streams


def stored_latents(replay):
    """Returns `{(stream, position): (deter, stoch)}` of all rows."""
    return {
        (stream, position): (deter.tolist(), stoch.tolist())
        for stream, rows in enumerate(stored(replay))
        for position, (deter, stoch) in enumerate(
            zip(rows["context/deter"], rows["context/stoch"], strict=True)
        )
    }


@pytest.fixture(scope="module")
def model():
    """A model that does not learn and trains on modes.

    So the latents of every update can be computed again afterwards.
    """
    model = kd.Dreamer(Scripted.observation_space, CONTINUOUS, CONFIG)
    model.compile(optimizer=keras.optimizers.SGD(0.0))
    model.sample_noise = model.mode_noise
    return model


def train(model, envs, ratio, total_steps, steps_per_epoch=5):
    replay = Replay(CONFIG, envs)
    driver = kd.Driver(envs, model, replay)
    ratio = kd.callbacks.TrainRatio(driver, ratio, total_steps)
    history = model.fit(
        kd.replay.ReplayDataset(replay),
        epochs=10_000,
        steps_per_epoch=steps_per_epoch,
        callbacks=[ratio],
        verbose=0,
    )
    return replay, driver, ratio, history.history


# Updates per transition: 5/12, 5/2 and 5/12.
CASES = [(1, 5, 60), (3, 30, 41), (16, 5, 117)]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: str(case[0]))
def run(request, model):
    num_envs, ratio, total = request.param
    original = model.policy
    model.policy = policy = Policy(original)
    try:
        envs = make_scripted(num_envs)
        replay, *rest = train(model, envs, ratio, total)
    finally:
        model.policy = original
    return request.param, envs, policy.returned, replay, *rest


def test_order_of_transitions_and_updates(run):
    (num_envs, ratio, total), _, _, replay, *_ = run
    kinds = [call[1] if call[0] == "add" else call[0] for call in replay.calls]
    for index, kind in enumerate(kinds):
        # A batch is drawn, trained on and written back before anything else.
        assert (kind == "sample") == (kinds[index + 1 :][:1] == ["update"])
    events = [kind for kind in kinds if kind != "sample"]
    assert events == algorithm_k(num_envs, total, TRAINED, LENGTH, ratio)


def test_first_update_comes_with_the_window_that_opens_the_gate(run):
    (num_envs, *_), _, _, replay, *_ = run
    kinds = [call[0] for call in replay.calls]
    first = kinds.index("sample")
    # N * 4 rows complete no window, each of the next 12 completes one.
    assert first == num_envs * 4 + 12
    assert kinds[first : first + 3] == ["sample", "update", "add"]


def test_training_ends_at_the_budget(run):
    (num_envs, ratio, total), _, _, replay, driver, callback, history = run
    assert driver.step == total == sum(len(r["reward"]) for r in stored(replay))
    updates = [call[0] for call in replay.calls].count("update")
    assert callback.updates == updates == history["updates"][-1]
    first = num_envs * (LENGTH - 1) + TRAINED
    assert abs(updates - 1 - (total - first) * ratio / TRAINED) < 1


def test_every_stored_row_is_the_scripted_one(run):
    (num_envs, *_), _, _, replay, *_ = run
    for number, rows in enumerate(stored(replay)):
        count = len(rows["reward"])
        expected = expected_rows(number, count)
        for name in ("reward", "is_first", "is_last", "is_terminal"):
            assert rows[name].tolist() == [row[name] for row in expected]
        observations = [row["observation"] for row in expected]
        assert rows["observation/observation"].tolist() == observations


def test_actions_are_stored_unclipped_and_zeroed_at_the_end(run):
    _, envs, returned, replay, *_ = run
    beyond = 0
    for number, rows in enumerate(stored(replay)):
        sampled = [state["action"]["action"][number] for state in returned]
        expected = np.array(sampled)[: len(rows["reward"])]
        beyond += np.sum(np.abs(expected) > 1)
        expected[rows["is_last"]] = 0
        np.testing.assert_array_equal(rows["action/action"], expected)
        # The environment saw them clipped, in its own bounds [-2, 2], but for
        # the last row, on which it has not acted yet.
        sent = expected[:-1][~rows["is_last"][:-1]]
        received = np.array(scripted_envs(envs)[number].received)
        np.testing.assert_allclose(
            received[: len(sent)], 2 * np.clip(sent, -1, 1), rtol=1e-6
        )
    assert beyond > 3


def test_latents_are_stored_as_the_policy_computed_them(run):
    (num_envs, *_), _, returned, replay, *_ = run
    rows = [0] * num_envs
    for kind, stream, latents in replay.calls:
        if kind != "add":
            continue
        state = returned[rows[stream]]
        rows[stream] += 1
        for name in ("deter", "stoch"):
            np.testing.assert_array_equal(latents[name], state[name][stream])
    assert np.any(returned[1]["deter"])


def test_updates_write_their_latents_and_nothing_else(run):
    (num_envs, *_), _, _, replay, *_ = run
    expected, rows = {}, [0] * num_envs
    for kind, given, held in replay.calls:
        if kind == "add":
            deter, stoch = held["deter"].tolist(), held["stoch"].tolist()
            expected[given, rows[given]] = deter, stoch
            rows[given] += 1
            continue
        if kind == "update":
            step_id, latents = given
            assert step_id.shape == (3, 4)
            for i, t in np.ndindex(step_id.shape):
                row = int(step_id[i, t]) >> 40, int(step_id[i, t]) & 2**40 - 1
                assert row in expected
                expected[row] = (
                    latents["deter"][i, t].tolist(),
                    latents["stoch"][i, t].tolist(),
                )
        # Also when the next batch is drawn: after the write-back.
        assert held == expected


def test_batches_hold_the_latents_of_their_context_rows(run):
    replay = run[3]
    for kind, batch, held in replay.calls:
        if kind != "sample":
            continue
        for i, step_id in enumerate(batch["step_id"][:, 0].tolist()):
            deter, stoch = held[step_id >> 40, step_id & 2**40 - 1]
            assert batch["context"]["deter"][i].tolist() == deter
            assert batch["context"]["stoch"][i].tolist() == stoch


@pytest.fixture(scope="module")
def latents_of(model):
    """Returns the function from a batch to the latents that it gives."""

    def latents(batch):
        noise = model.mode_noise(CONFIG.batch_size, CONFIG.batch_length)
        return model.loss_terms(batch, noise, training=False).latents

    return model.compile_function(
        latents, model.trainable_variables + model.non_trainable_variables
    )


def test_written_latents_are_those_of_the_update(run, latents_of):
    replay = run[3]
    batches = [call[1] for call in replay.calls if call[0] == "sample"]
    updates = [call[1] for call in replay.calls if call[0] == "update"]
    for batch, (step_id, written) in zip(batches, updates, strict=True):
        np.testing.assert_array_equal(batch["step_id"][:, 1:], step_id)
        inputs = {k: v for k, v in batch.items() if k != "step_id"}
        for name, value in latents_of(inputs).items():
            value = keras.ops.convert_to_numpy(value)
            np.testing.assert_allclose(written[name], value, 1e-4, 1e-6)


def test_logs_are_scalars_and_complete(run):
    history = run[-1]
    losses = "rec/observation rew con dyn rep policy value repval".split()
    names = "episode/return episode/length episodes agent_steps env_steps "
    names += "updates replay_ratio updates/s env_steps/s loss ent/action"
    for name in [*(f"loss/{loss}" for loss in losses), *names.split()]:
        assert name in history, name
    for name, values in history.items():
        assert all(isinstance(v, int | float) for v in values), name
    for name in losses:
        assert np.isfinite(history[f"loss/{name}"]).all(), name


@pytest.mark.parametrize("num_envs", [1, 3, 16])
@pytest.mark.parametrize("repeat", [1, 2, 4])
def test_action_repeat_does_not_count(model, num_envs, repeat):
    first = num_envs * (LENGTH - 1) + TRAINED
    total = first + 9
    envs = make_scripted(num_envs, repeat)
    replay, driver, callback, history = train(model, envs, 6, total, 2)
    assert driver.step == total
    assert abs(callback.updates - 1 - 9 * 6 / TRAINED) <= 1
    assert history["agent_steps"][-1] == total
    # Of each environment all rows but the resets were simulated.
    steps = 0
    for number, rows in enumerate(stored(replay)):
        script = scripted_envs(envs)[number]
        done = rows["is_last"].sum()
        lengths = [script.lengths[i % 6] for i in range(done)]
        unfinished = np.sum(~rows["is_last"] & ~rows["is_first"])
        unfinished -= sum(-(-length // repeat) - 1 for length in lengths)
        steps += sum(lengths) + unfinished * repeat
    assert history["env_steps"][-1] == driver.env_steps == steps


def test_modes_of_autoreset_train_on_the_same_rows(model):
    for mode in AutoresetMode:
        envs = SyncVectorEnv(
            [lambda number=number: Scripted(number) for number in range(3)],
            autoreset_mode=mode,
        )
        replay, *_ = train(model, envs, 6, 50)
        for number, rows in enumerate(stored(replay)):
            expected = expected_rows(number, len(rows["reward"]))
            assert rows["reward"].tolist() == [r["reward"] for r in expected]
