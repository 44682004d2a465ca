"""`fit` with Keras's own callbacks, with Ctrl-C and without environments."""

import csv
import json
import pathlib
import signal
import types

import agents
import keras
import numpy as np
import pytest
from helpers import to_numpy
from scripted import CONTINUOUS
from scripted import Scripted
from scripted import expected_rows
from scripted import make_scripted
from scripted import scripted_envs
from scripted import tiny_config

import keras_dreamer as kd

CONFIG = tiny_config()
# XLA takes twice as long to compile an update as TensorFlow to trace it.
JIT = keras.backend.backend() == "jax"


@pytest.fixture(scope="module", autouse=True)
def quick_backend():
    with agents.quick_backend():
        yield


@pytest.fixture(scope="module")
def model():
    model = kd.Dreamer(Scripted.observation_space, CONTINUOUS, CONFIG)
    model.compile(jit_compile=JIT)
    return model


def prepare(model, envs, **kwargs):
    """Returns the dataset and `TrainRatio`: an update for two steps."""
    replay = kd.replay.Replay(CONFIG, envs)
    driver = kd.Driver(envs, model, replay)
    ratio = kd.callbacks.TrainRatio(driver, ratio=6, **kwargs)
    return kd.replay.ReplayDataset(replay), ratio


def train(model, callbacks=(), epochs=3, verbose=0):
    dataset, ratio = prepare(model, make_scripted(3))
    history = model.fit(
        dataset,
        epochs=epochs,
        steps_per_epoch=10,
        callbacks=[*callbacks, ratio],
        verbose=verbose,
    )
    return history.history


def test_early_stopping_sees_the_episodes(model):
    # Returns grow with the number of the episode.
    stop = keras.callbacks.EarlyStopping(
        "episode/return", mode="max", patience=1
    )
    returns = train(model, [stop])["episode/return"]
    assert returns == sorted(returns) and len(returns) == 3
    stop = keras.callbacks.EarlyStopping(
        "episode/return", mode="min", patience=1
    )
    assert len(train(model, [stop])["episode/return"]) == 2


def test_csv_logger_writes_scalars(model, tmp_path):
    path = tmp_path / "log.csv"
    history = train(model, [keras.callbacks.CSVLogger(path)])
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["epoch"] for row in rows] == ["0", "1", "2"]
    for name, values in history.items():
        written = [float(row[name]) for row in rows]
        np.testing.assert_allclose(written, values, err_msg=name)


def test_checkpoint_during_an_epoch_holds_the_newest_weights(model, tmp_path):
    path = str(tmp_path / "agent.keras")
    checkpoint = keras.callbacks.ModelCheckpoint(path, save_freq=10)
    train(model, [checkpoint], epochs=1)
    loaded = keras.saving.load_model(path)
    for one, two in zip(model.variables, loaded.variables, strict=True):
        np.testing.assert_array_equal(to_numpy(one), to_numpy(two))
    observation = np.ones((2, 3), "float32")
    actions = [m.act(observation, None)[0] for m in (model, loaded)]
    np.testing.assert_allclose(*actions, rtol=1e-5)


def test_best_checkpoint_by_return(model, tmp_path):
    path = str(tmp_path / "best.weights.h5")
    checkpoint = keras.callbacks.ModelCheckpoint(
        path,
        monitor="episode/return",
        mode="max",
        save_best_only=True,
        save_weights_only=True,
    )
    train(model, [checkpoint], epochs=1)
    assert pathlib.Path(path).exists()


def test_tensorboard(model, tmp_path):
    pytest.importorskip("tensorflow")  # On every backend it writes with it.
    pytest.importorskip("tensorboard")
    train(model, [keras.callbacks.TensorBoard(tmp_path)], epochs=1)
    assert list(tmp_path.rglob("events.out.*"))


def test_callbacks_after_ours_see_what_ours_log(model):
    seen = []
    callback = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: seen.append(dict(logs)),
        on_epoch_end=lambda epoch, logs: seen.append(dict(logs)),
    )
    train(model, [callback], epochs=1)  # Given before `TrainRatio`.
    assert len(seen) == 11
    for logs in seen:
        assert {"loss", "loss/repval", "agent_steps"} <= logs.keys()
        for name, value in logs.items():
            assert isinstance(value, int | float), name
    # Batch logs are means over the epoch so far, as Keras's own.
    assert seen[-1]["loss"] == pytest.approx(seen[-2]["loss"])


def test_the_bar_shows_the_few_that_matter(model, capsys):
    train(model, epochs=2, verbose=2)
    printed = capsys.readouterr().out
    assert printed.count("Epoch 1/2  10/10  loss ") == 1
    for text in ("  return ", " env steps  0:00:0", " updates/s  ", "  ratio "):
        assert text in printed
    assert "repval" not in printed


class Interrupting(Scripted):
    """Presses Ctrl-C before some of its steps."""

    def __init__(self, number, presses):
        super().__init__(number)
        self.presses = presses

    def step(self, action):
        for step in self.presses:
            if self.number == 0 and len(self.received) == step:
                signal.raise_signal(signal.SIGINT)
        return super().step(action)


def interrupted(model, presses):
    envs = make_scripted(3, env=Interrupting, presses=presses)
    dataset, ratio = prepare(model, envs)
    handler = signal.getsignal(signal.SIGINT)
    try:
        result = model.fit(
            dataset,
            epochs=100,
            steps_per_epoch=10,
            callbacks=[ratio],
            verbose=0,
        )
    finally:
        assert signal.getsignal(signal.SIGINT) is handler
    return result, dataset, ratio


@pytest.mark.parametrize("press", [1, 25], ids=["filling", "training"])
def test_interrupt_during_collection_ends_fit_cleanly(model, press):
    history, dataset, ratio = interrupted(model, [press])
    assert isinstance(history, keras.callbacks.History)
    updates = ratio.updates
    # The vector step in which it came was the last.
    assert len(scripted_envs(ratio.driver.envs)[0].received) == press + 1
    assert (updates == 0) == (press == 1)
    # The model can be used, and `fit` goes on where it was.
    for variable in model.variables:
        assert np.all(np.isfinite(to_numpy(variable))), variable.path
    model.act(np.ones((2, 3), "float32"))
    model.fit(dataset, steps_per_epoch=3, callbacks=[ratio], verbose=0)
    assert ratio.updates == updates + 3
    rows = expected_rows(0, -(-ratio.driver.step // 3))
    batch = dataset.replay.sample(50)
    streams = batch["step_id"] >> 40
    position = (batch["step_id"] & 2**40 - 1)[streams == 0]
    rewards = [rows[p]["reward"] for p in position]
    assert batch["reward"][streams == 0].tolist() == rewards


def test_interrupt_during_an_update_ends_fit_after_it(model):
    dataset, ratio = prepare(model, make_scripted(3))
    press = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: (
            batch == 4 and signal.raise_signal(signal.SIGINT)
        )
    )
    history = model.fit(
        dataset,
        epochs=100,
        steps_per_epoch=10,
        callbacks=[press, ratio],
        verbose=0,
    )
    assert history.history["updates"] == [5]
    model.act(np.ones((2, 3), "float32"))


def test_second_interrupt_is_not_held_back(model):
    with pytest.raises(KeyboardInterrupt):
        interrupted(model, [25, 25])


def offline(steps, num_envs=2):
    """Returns a replay of stored episodes, without latents."""
    spaces = types.SimpleNamespace(
        num_envs=num_envs,
        single_observation_space=Scripted.observation_space,
        single_action_space=CONTINUOUS,
    )
    replay = kd.replay.Replay(CONFIG, spaces)
    for number in range(num_envs):
        for row in expected_rows(number, steps):
            observation = np.array(row.pop("observation"), "float32")
            step = {
                **row,
                "observation": {"observation": observation},
                "action": {"action": np.zeros(1, "float32")},
            }
            replay.add(step, number)
    return replay


def test_stored_episodes_train_without_an_environment(model):
    replay = offline(30)
    dataset = kd.replay.ReplayDataset(replay, steps_per_epoch=15)
    assert not np.any(replay._pool.arrays["context/deter"])
    before = [to_numpy(v) for v in model.trainable_variables]
    history = model.fit(dataset, epochs=2, verbose=0).history
    assert len(history["loss"]) == 2
    assert all(np.isfinite(values).all() for values in history.values())
    assert "agent_steps" not in history
    after = [to_numpy(v) for v in model.trainable_variables]
    assert any(np.any(a != b) for a, b in zip(before, after, strict=True))
    # The latents of nearly all rows are there now.
    written = np.any(replay._pool.arrays["context/deter"], axis=1)
    assert written.sum() > 40


class Recorded(kd.replay.ReplayDataset):
    """Serves batches of one's own, without a replay."""

    def __init__(self, batch):
        super().__init__(None, batch_size=3, batch_length=4)
        self.batch = batch

    def draw(self):
        return self.batch


def test_batches_of_ones_own_train(model):
    batch = offline(30).sample(3)
    del batch["step_id"]
    history = model.fit(Recorded(batch), steps_per_epoch=2, verbose=0)
    assert np.isfinite(history.history["loss"][0])


def test_run_log_has_every_episode_and_every_number(model, tmp_path):
    pytest.importorskip("tensorboardX")
    history = train(model, [kd.callbacks.RunLog(tmp_path)], epochs=2)
    text = (tmp_path / "log.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert lines[0]["event"] == "start"
    episodes = [line for line in lines if line["event"] == "episode"]
    assert len(episodes) == sum(history["episodes"]) > 0
    # Environment 0 plays 1, 2, ... steps: its first return is 1/8.
    first = next(line for line in episodes if line["stream"] == 0)
    assert (first["return"], first["length"]) == (0.125, 1)
    epochs = [line for line in lines if line["event"] == "epoch"]
    for name, values in history.items():
        assert [line[name] for line in epochs] == values, name
    assert list(tmp_path.glob("events.out.*"))
