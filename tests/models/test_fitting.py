import csv
import json
import signal

import agents
import gymnasium
import keras
import numpy as np
import pytest
from helpers import to_numpy

from keras_dreamer.callbacks import Checkpoint
from keras_dreamer.callbacks import Evaluate
from keras_dreamer.callbacks import LatentWriteBack
from keras_dreamer.callbacks import SlowCritic
from keras_dreamer.callbacks.skip_limit import SkipLimit
from keras_dreamer.envs import make
from keras_dreamer.models.fitting import recipe_optimizer
from keras_dreamer.models.start_line import start_line

pytestmark = pytest.mark.usefixtures("quick_backend")


@pytest.fixture(scope="module")
def model():
    """One agent for all tests of this file: compiled once."""
    model = agents.make_agent(
        agents.numbers(3), agents.bounded(2), **agents.SHALLOW, warmup=0
    )
    return agents.quick_compile(model, updates=40)


@pytest.fixture(scope="module")
def batch(model):
    return agents.random_batch(model)


class Recorder(keras.callbacks.Callback):
    """Remembers what Keras tells its callbacks."""

    def __init__(self):
        super().__init__()
        self.batches = []
        self.epochs = []
        self.ended = 0

    def on_train_batch_end(self, batch, logs=None):
        self.batches.append(dict(logs))

    def on_epoch_end(self, epoch, logs=None):
        self.epochs.append(dict(logs))

    def on_train_end(self, logs=None):
        self.ended += 1


# Compiling.


def test_fit_needs_compile():
    model = agents.make_agent()
    dataset = agents.FixedBatches(agents.random_batch(model))
    with pytest.raises(ValueError, match="compiled before `fit`.*compile()"):
        model.fit(dataset)


def test_several_steps_in_one_call_are_refused(model):
    with pytest.raises(
        ValueError, match=r"`steps_per_execution=1`.*steps_per_execution=2"
    ):
        model.compile(steps_per_execution=2)


@pytest.mark.parametrize(
    "arguments",
    [
        {"loss": "mse"},
        {"metrics": ["mae"]},
        {"loss_weights": [1.0]},
        {"weighted_metrics": ["mae"]},
    ],
)
def test_losses_and_metrics_of_others_are_refused(model, arguments):
    (name,) = arguments
    with pytest.raises(ValueError, match=rf"\['{name}'\].*loss_scales"):
        model.compile(**arguments)


def test_default_optimizer_has_the_settings_of_the_recipe():
    config = agents.make_agent().config.replace(agc=0.2, eps=1e-10)
    optimizer = recipe_optimizer(config)
    assert (
        optimizer.get_config()
        | {
            "learning_rate": pytest.approx(1e-2),
            "beta_1": 0.9,
            "beta_2": 0.999,
            "epsilon": 1e-10,
            "agc": 0.2,
            "pmin": 1e-3,
            "warmup": 2,
        }
        == optimizer.get_config()
    )


def test_any_keras_optimizer_may_be_given():
    model = agents.make_agent()
    model.compile(optimizer=keras.optimizers.SGD(0.1))
    assert isinstance(model.optimizer, keras.optimizers.SGD)


# Logs.


def test_logs_are_python_floats_and_name_every_loss(model, batch):
    recorder = Recorder()
    model.fit(
        agents.FixedBatches(batch, steps_per_epoch=2),
        epochs=2,
        callbacks=[recorder],
        verbose=0,
    )
    assert len(recorder.batches) == 4 and len(recorder.epochs) == 2
    for logs in recorder.batches + recorder.epochs:
        assert all(type(value) is float for value in logs.values())
        assert np.isfinite(list(logs.values())).all()
    losses = "rec/observation rew con dyn rep policy value repval".split()
    expected = {"loss", *(f"loss/{name}" for name in losses)}
    expected |= {"retnorm/lo", "retnorm/hi", "ent/action", "dyn_ent"}
    norms = {f"grad_norm/{part}" for part in ("world_model", "actor", "critic")}
    expected |= {"grad_norm", *norms}
    assert expected <= set(recorder.epochs[0])
    # Logs are means over the epoch so far, as everywhere in Keras.
    assert recorder.epochs[0]["loss"] == recorder.batches[1]["loss"]
    assert recorder.batches[2]["loss"] != recorder.batches[3]["loss"]
    # One update, so that nothing is averaged.
    squares = [recorder.batches[0][name] ** 2 for name in norms]
    assert min(squares) > 0
    assert recorder.batches[0]["grad_norm"] == pytest.approx(
        sum(squares) ** 0.5
    )


def test_history_holds_the_epochs(model, batch):
    history = agents.train(model, batch, updates=3)
    assert len(history["loss"]) == 3
    assert history["loss/con"][0] != history["loss/con"][2]


# Callbacks.


def slow_count(model):
    return int(model.official_weights()["slowval_count/value"])


@pytest.mark.parametrize("callbacks", [None, [], [SlowCritic(0.5)]])
def test_the_slow_critic_moves_once_an_update(model, batch, callbacks):
    before = slow_count(model)
    agents.train(model, batch, updates=3, callbacks=callbacks)
    assert slow_count(model) == before + 3


def test_the_recipe_copies_the_critic_at_first_and_then_averages(batch):
    model = agents.make_agent(
        agents.numbers(3), agents.bounded(2), **agents.SHALLOW, warmup=0
    )
    slow, value = "slowval/mlp/norm0/scale", "val/mlp/norm0/scale"
    assert model.config.slow_copy  # The default recipe is that of the paper.
    weights = agents.random_weights(model)
    model.load_official_weights(weights)
    model.update_slow_critic(0.02)
    np.testing.assert_array_equal(
        model.official_weights()[slow], weights[value]
    )
    weights = {**model.official_weights(), value: weights[value] + 1}
    model.load_official_weights(weights)
    model.update_slow_critic(0.02)
    np.testing.assert_allclose(
        model.official_weights()[slow],
        0.02 * weights[value] + 0.98 * weights[slow],
        rtol=1e-6,
    )
    assert slow_count(model) == 2


class LatentRecorder:
    """Stands in for a replay."""

    def __init__(self):
        self.updates = []

    def update(self, step_id, latents):
        self.updates.append((step_id, latents))


@pytest.mark.parametrize("callbacks", [None, [LatentWriteBack()]])
def test_latents_are_written_back_once_an_update(model, batch, callbacks):
    step_id = np.arange(21).reshape(3, 7)
    dataset = agents.FixedBatches({**batch, "step_id": step_id})
    dataset.replay = LatentRecorder()
    model.fit(dataset, epochs=2, callbacks=callbacks, verbose=0)
    assert len(dataset.replay.updates) == 2
    written, latents = dataset.replay.updates[-1]
    np.testing.assert_array_equal(written, step_id[:, 1:])
    assert latents["deter"].shape == (3, 6, 64)
    assert latents["stoch"].shape == (3, 6, 4)


def test_nothing_is_kept_after_fit(model, batch):
    agents.train(model, batch, updates=1)
    assert model.exchange.source is None
    assert model.exchange.latents is None
    assert model.exchange.state is None


def test_progress_bar_shows_few_numbers(model, batch, capsys):
    model.fit(agents.FixedBatches(batch), verbose=2)
    shown = capsys.readouterr().out
    assert "loss" in shown and "retnorm" not in shown


class OwnBar(keras.callbacks.ProgbarLogger):
    """A bar of the user's own."""

    def on_epoch_end(self, epoch, logs=None):
        print("own bar", epoch)


def test_a_progress_bar_of_the_user_replaces_ours(model, batch, capsys):
    model.fit(agents.FixedBatches(batch), callbacks=[OwnBar()], verbose=2)
    _, *shown = capsys.readouterr().out.splitlines()
    assert shown == ["own bar 0"]


@pytest.mark.parametrize("verbose", [0, 2])
def test_the_first_line_says_what_runs_where(model, batch, capsys, verbose):
    model.fit(agents.FixedBatches(batch), epochs=2, verbose=verbose)
    lines = capsys.readouterr().out.splitlines()
    expected = [start_line(model, None)] if verbose else []
    assert lines[:1] == expected
    assert sum("parameters" in line for line in lines) == len(expected)


# Ctrl-C.


class PressCtrlC(keras.callbacks.Callback):
    """Interrupts in the middle of update number `update`, from 0 on."""

    def __init__(self, update):
        super().__init__()
        self.update = update

    def on_train_batch_begin(self, batch, logs=None):
        if batch == self.update:
            signal.raise_signal(signal.SIGINT)


def iterations(model):
    return int(model.optimizer.iterations)


def test_ctrl_c_ends_training_cleanly(model, batch):
    handler = signal.getsignal(signal.SIGINT)
    recorder, before = Recorder(), iterations(model)
    history = model.fit(
        agents.FixedBatches(batch, steps_per_epoch=5),
        epochs=3,
        callbacks=[recorder, PressCtrlC(1)],
        verbose=0,
    )
    # The update that was running is finished, then nothing more happens.
    assert len(recorder.batches) == 2
    assert iterations(model) == before + 2
    assert recorder.ended == 1
    assert len(history.history["loss"]) == 1
    assert signal.getsignal(signal.SIGINT) is handler


def test_the_model_is_usable_after_ctrl_c(model, batch):
    before = iterations(model)
    model.fit(
        agents.FixedBatches(batch, steps_per_epoch=5),
        callbacks=[PressCtrlC(0)],
        verbose=0,
    )
    model.act(np.zeros((1, 3), "float32"))
    assert np.isfinite(agents.train(model, batch, updates=1)["loss"]).all()
    assert iterations(model) == before + 2


class PressCtrlCTwice(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)


def test_a_second_ctrl_c_interrupts_at_once(model, batch):
    recorder = Recorder()
    with pytest.raises(KeyboardInterrupt):
        model.fit(
            agents.FixedBatches(batch, steps_per_epoch=5),
            callbacks=[PressCtrlCTwice(), recorder],
            verbose=0,
        )
    assert recorder.batches == []
    # Between two updates there is a state to keep.
    model.act(np.zeros((1, 3), "float32"))
    assert np.isfinite(agents.train(model, batch, updates=1)["loss"]).all()


def test_fit_takes_other_datasets_too(model, batch):
    class Plain(keras.utils.PyDataset):
        num_batches = 2

        def __getitem__(self, index):
            return (batch,)

    assert len(model.fit(Plain(), verbose=0).history["loss"]) == 1


# Evaluating.


class Push(gymnasium.Env):
    """The sum of the actions of five steps; they are seen by the agent."""

    observation_space = agents.numbers(3)
    action_space = agents.bounded(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.np_random.normal(size=3).astype("float32"), {}

    def step(self, action):
        self.steps += 1
        observation = np.array([*action, self.steps], "float32")
        return observation, action.sum(), False, self.steps == 5, {}


def pushes():
    return make(Push, num_envs=2, seed=1)


def score(model):
    """Returns the mean return of a loop with `act`."""
    envs = pushes()
    observation, _ = envs.reset()
    state, total = None, np.zeros(2)
    for _ in range(5):
        action, state = model.act(observation, state, deterministic=True)
        observation, reward, *_ = envs.step(action)
        total += reward
    return total.mean()


def everything(model):
    return [*model.variables, *model.optimizer.variables]


def test_evaluating_sees_the_newest_weights_and_changes_nothing(
    model, batch, tmp_path
):
    before = [to_numpy(v).copy() for v in everything(model)]
    agents.train(model, batch, updates=3)
    alone = [to_numpy(v).copy() for v in everything(model)]
    for variable, value in zip(everything(model), before, strict=True):
        variable.assign(value)
    first = score(model)
    file = keras.callbacks.CSVLogger(tmp_path / "log.csv")
    evaluate = Evaluate(pushes(), every=3, episodes=2, deterministic=True)
    history = agents.train(model, batch, 3, callbacks=[file, evaluate])
    for variable, value in zip(everything(model), alone, strict=True):
        np.testing.assert_array_equal(to_numpy(variable), value)
    _, _, last = history["evaluation/return"]
    assert last == pytest.approx(score(model), rel=1e-5)
    assert last != pytest.approx(first, rel=1e-5)
    # Loggers see it, also those that the user names before it.
    with (tmp_path / "log.csv").open() as lines:
        column = [row["evaluation/return"] for row in csv.DictReader(lines)]
    assert column[:2] == ["nan"] * 2 and float(column[2]) == last


# Checkpoints.


def test_checkpoints_come_last_and_know_the_run(model, batch, tmp_path):
    checkpoint, other = Checkpoint(tmp_path), Recorder()
    model.fit(
        agents.FixedBatches(batch), callbacks=[checkpoint, other], verbose=0
    )
    kinds = [
        type(callback)
        for callback in checkpoint._callbacks
        if not isinstance(callback, SkipLimit)
    ]
    assert kinds == [SlowCritic, LatentWriteBack, Recorder, Checkpoint]
    (path,) = checkpoint.folder.finished()
    state = json.loads((path / "state.json").read_text())["content"]
    assert (state["updates"], state["replay"]) == (1, False)


def test_a_resumed_fit_begins_in_its_epoch(model, batch, tmp_path):
    checkpoint = Checkpoint(tmp_path)
    checkpoint.resume(tmp_path, updates=4)
    dataset = agents.FixedBatches(batch, steps_per_epoch=3)
    before = int(model.optimizer.iterations)
    history = model.fit(dataset, epochs=2, callbacks=[checkpoint], verbose=0)
    assert history.epoch == [1]
    assert int(model.optimizer.iterations) - before == 6 - 4
