"""A run that was saved, and what goes on from it."""

import copy
import json
import os
import pathlib
import shutil
import subprocess
import sys
import types

import agents
import keras
import numpy as np
import pytest
from helpers import GOLDEN
from helpers import damage
from helpers import to_numpy
from scripted import Scripted
from scripted import make_scripted
from scripted import tiny_config

import keras_dreamer as kd
from keras_dreamer.replay.pool import step_ids

CONFIG = tiny_config(lr=1e-2, warmup=0)
STEPS = 5  # Updates of an epoch.
RATIO = 6  # One update every two agent steps.


@pytest.fixture(scope="module", autouse=True)
def quick_backend():
    with agents.quick_backend():
        yield


def make(logdir, config=CONFIG, num_envs=3, ratio=RATIO, dtype=None, **kwargs):
    """Makes everything that a script makes before `fit`."""
    envs = make_scripted(num_envs, lengths=(9, 4, 30))
    model = kd.Dreamer(
        envs.single_observation_space,
        envs.single_action_space,
        config,
        seed=kwargs.pop("seed", 3),
        dtype=dtype,
    )
    agents.quick_compile(model, **kwargs)
    replay = kd.replay.Replay(config, envs, seed=3, dtype="float32")
    driver = kd.Driver(envs, model, replay)
    ratio = kd.callbacks.TrainRatio(driver, ratio)
    checkpoint = kd.callbacks.Checkpoint(logdir, every=4, keep=9)
    return types.SimpleNamespace(
        envs=envs,
        model=model,
        replay=replay,
        driver=driver,
        ratio=ratio,
        checkpoint=checkpoint,
        callbacks=[ratio, checkpoint],
        dataset=kd.replay.ReplayDataset(replay),
        logdir=logdir,
    )


def fit(run, epochs, callbacks=None):
    callbacks = run.callbacks if callbacks is None else callbacks
    return run.model.fit(
        run.dataset,
        steps_per_epoch=STEPS,
        epochs=epochs,
        callbacks=callbacks,
        verbose=0,
    )


def resume(run, **kwargs):
    return kd.resume(
        run.logdir, run.model, run.dataset, run.callbacks, **kwargs
    )


def contents(run):
    """Returns everything that the updates of a run change or depend on."""
    model, replay = run.model, run.replay
    items, pool = replay._items, replay._pool
    row = np.flatnonzero(pool.files >= 0)
    order = np.argsort(pool.ids(row))
    return {
        **numbered("model", model.variables),
        **numbered("optimizer", model.optimizer.variables),
        **{name: x[row[order]] for name, x in pool.arrays.items()},
        "actions_drawn": model.action_noise.drawn,
        "seed": model.seed,
        "rows": items.rows.copy(),
        "evicted": items.evicted.copy(),
        "items": np.asarray(items.order),
        "queue": np.array(items.queue),
        "rng": str(replay._rng.bit_generator.state),
    }


def numbered(group, variables):
    # Not the running means of the logs.
    kept = [v for v in variables if not v.path.startswith("update")]
    return {f"{group} {i}": to_numpy(v) for i, v in enumerate(kept)}


def assert_same(actual, expected, exact=True):
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        if exact or np.asarray(value).dtype.kind not in "f":
            np.testing.assert_array_equal(actual[name], value, err_msg=name)
        else:
            np.testing.assert_allclose(
                actual[name], value, 1e-4, 1e-5, err_msg=name
            )


class Weights(keras.callbacks.Callback):
    """Keeps the weights after some updates."""

    def __init__(self, *updates):
        super().__init__()
        self.updates, self.done, self.kept = updates, 0, {}

    def on_train_batch_end(self, batch, logs=None):
        self.done += 1
        if self.done in self.updates:
            weights = self.model.official_weights()
            self.kept[self.done] = {k: v.copy() for k, v in weights.items()}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A run of 10 updates, saved after 4, 8 and 10, and what came after."""
    run = make(tmp_path_factory.mktemp("run"))
    weights = Weights(4, 8)
    fit(run, 2, [*run.callbacks, weights])
    run.weights = weights.kept
    run.end = contents(run)
    run.state = copy.deepcopy(run.ratio.get_state())
    # Five more updates from the replay alone.
    run.loss = fit(run, 1, []).history["loss"]
    run.later = contents(run)
    return run


@pytest.fixture(scope="module")
def resumed(saved):
    """What another process makes of it."""
    run = make(saved.logdir, seed=77)
    run.found = resume(run)
    run.start = contents(run)
    run.state = copy.deepcopy(run.ratio.driver.get_state())
    run.loss = fit(run, 1, []).history["loss"]
    run.later = contents(run)
    return run


def test_everything_is_as_it_was(saved, resumed):
    assert_same(resumed.start, saved.end)
    assert resumed.found.path.name == "00000003"
    assert (resumed.found.updates, resumed.found.epoch) == (10, 2)
    assert resumed.ratio.updates == 10
    assert resumed.driver.step == saved.driver.step
    assert resumed.driver.env_steps == saved.driver.env_steps
    assert json.loads(json.dumps(resumed.state)) == saved.state["driver"]


def test_updates_go_on_as_if_nothing_had_happened(saved, resumed):
    exact = keras.backend.backend() == "jax"
    assert_same(resumed.later, saved.later, exact)
    np.testing.assert_allclose(
        resumed.loss, saved.loss, rtol=0 if exact else 1e-5
    )
    assert np.any(saved.later["rng"] != saved.end["rng"])


def test_a_checkpoint_holds_the_weights_of_its_update(saved):
    # JAX keeps the newest ones outside of the model while `fit` runs.
    for path, (_, weights) in zip(
        saved.checkpoint.folder.finished(), saved.weights.items(), strict=False
    ):
        model = keras.saving.load_model(path / "agent.keras")
        found = model.official_weights()
        for name, value in weights.items():
            np.testing.assert_array_equal(found[name], value, err_msg=name)


def test_the_record_names_recipe_and_versions(saved):
    path = saved.checkpoint.folder.finished()[-1]
    state = json.loads((path / "state.json").read_text())["content"]
    assert state["settings"]["config"]["recipe"] == "paper"
    assert state["settings"]["backend"] == keras.backend.backend()
    assert state["versions"]["keras"] == keras.__version__
    assert state["versions"]["keras_dreamer"] == kd.__version__


def test_environments_start_new_episodes_that_are_cut(saved):
    run = make(saved.logdir)
    resume(run)
    before = run.replay._items.rows.copy()
    drawn = []
    reset = run.envs.reset
    run.envs.reset = lambda seed: drawn.append(seed) or reset(seed=seed)
    while run.driver.step < saved.state["driver"]["step"] + 30:
        run.driver.advance()
    # Seeds of their own, not those of the run's first episodes.
    assert len(set(drawn[0])) == 3 and not set(drawn[0]) & set(run.envs.seeds)
    batch = run.replay.sample(5000)
    cut = 0
    for stream, rows in enumerate(before):
        place = run.replay._pool.locate(
            step_ids(stream, rows - 1 + np.arange(2))
        )
        arrays = run.replay._pool.arrays
        assert arrays["is_first"][place[1]] and not arrays["reward"][place[1]]
        if arrays["is_last"][place[0]]:
            continue  # The episode ended there by itself.
        cut += 1
        inside = batch["step_id"][:, :-1] == step_ids(stream, rows - 1)
        assert inside.any()
        assert batch["is_last"][:, :-1][inside].all()
        assert not batch["is_terminal"][:, :-1][inside].any()
        assert batch["is_first"][:, 1:][inside].all()
    assert cut


def test_a_run_goes_on_to_its_budget(saved, resumed, tmp_path):
    # 20 updates in all, of which the checkpoint has 8: no more, no less.
    shutil.copytree(saved.logdir, tmp_path / "elsewhere")
    run = make(tmp_path / "elsewhere")
    run.model = run.driver.model = resumed.model  # It is compiled.
    found = resume(run, checkpoint="00000002")
    assert (found.updates, found.epoch) == (8, 1)
    step = run.driver.step
    history = fit(run, 4)
    assert history.epoch == [1, 2, 3]
    assert run.ratio.updates == 20
    assert int(run.model.optimizer.iterations) == 20
    # Two steps for each of the 12 updates: no burst, nothing missed.
    assert abs(run.driver.step - step - 24) <= 1
    assert history.history["updates"] == [13, 18, 20]
    assert [p.name for p in run.checkpoint.folder.finished()][3:] == [
        "00000004",
        "00000005",
        "00000006",
    ]


@pytest.mark.parametrize("ratio", [1, 60])
def test_another_ratio_is_honoured(saved, tmp_path, ratio):
    shutil.copytree(saved.logdir, tmp_path / "run")
    run = make(tmp_path / "run", ratio=ratio)
    resume(run)
    updates, step = run.ratio.updates, run.driver.step
    run.model.fit = None
    due = simulate(run, agent_steps=36)
    assert abs(sum(due) - 36 * ratio / 12) <= 1
    assert max(due) <= max(1, ratio / 12)
    assert (run.ratio.updates, run.driver.step) == (
        updates + sum(due),
        step + 36,
    )


def simulate(run, agent_steps):
    """Calls `TrainRatio` as `fit` does; returns the updates of each step."""
    callback = run.ratio
    callback.set_dataset(run.dataset)
    callback.set_model(run.model)
    end = run.driver.step + agent_steps
    callback.total_steps = end
    due = dict.fromkeys(range(run.driver.step + 1, end + 1), 0)
    run.model.stop_training = False
    callback.on_train_begin()
    callback.on_epoch_begin(0)
    while not run.model.stop_training:
        callback.on_train_batch_begin(0)
        due[run.driver.step] += 1
        callback.on_train_batch_end(0)
    return list(due.values())


# Refusals.


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"units": 16}, "units: 16 here, 8 in the checkpoint. Make"),
        ({"recipe": "head"}, "recipe: 'head' here, 'paper' in the"),
        ({"batch_length": 8}, "batch_length: 8 here, 4 in the"),
    ],
)
def test_another_model_is_refused(saved, fields, message):
    run = make(saved.logdir, tiny_config(lr=1e-2, warmup=0, **fields))
    before = contents(run)
    with pytest.raises(ValueError, match=message):
        resume(run)
    assert_same(contents(run), before)
    assert run.checkpoint.newest is None


def test_another_number_of_environments_is_refused(saved):
    run = make(saved.logdir, num_envs=2)
    before = contents(run)
    with pytest.raises(ValueError, match="num_envs: 2 here, 3 in the file"):
        resume(run)
    assert_same(contents(run), before)


def test_a_model_without_an_optimizer_is_refused(saved):
    model = kd.Dreamer(Scripted.observation_space, Scripted().action_space)
    with pytest.raises(ValueError, match=r"Call model.compile\(\) first"):
        kd.resume(saved.logdir, model, saved.dataset)


def test_nothing_to_go_on_from(saved, tmp_path):
    run = make(tmp_path)
    with pytest.raises(ValueError, match="hold a checkpoint.*without one"):
        resume(run)
    run = make(saved.logdir)
    names = r"\['00000001', '00000002', '00000003'\]"
    with pytest.raises(ValueError, match=f"one of {names}.*checkpoint='7'"):
        resume(run, checkpoint="7")


@pytest.fixture(scope="module")
def other(saved):
    """A run to resume into."""
    return make(saved.logdir)


FILES = ["agent.keras", "replay.npz", "state.json", "rows"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("how", ["cut", "change", "remove"])
def test_damage_is_named_and_the_checkpoint_before_offered(
    saved, other, tmp_path, name, how
):
    logdir = tmp_path / "run"
    shutil.copytree(saved.logdir, logdir)
    newest = logdir / "checkpoints" / "00000003"
    path = newest / name
    if name == "rows":  # The last ones are in this checkpoint alone.
        path = sorted(newest.glob("rows-*"))[-1]
    damage(path, how)
    message = f"{path.name}.*checkpoint='00000002'"
    before = contents(other)
    with pytest.raises(ValueError, match=message):
        kd.resume(logdir, other.model, other.dataset)
    assert_same(contents(other), before)
    kd.resume(logdir, other.model, other.dataset, checkpoint="00000002")
    assert int(other.model.optimizer.iterations) == 8


def test_damage_everywhere(saved, other, tmp_path):
    logdir = tmp_path / "run"
    shutil.copytree(saved.logdir, logdir)
    for path in (logdir / "checkpoints").glob("*/agent.keras"):
        path.write_bytes(b"")
    with pytest.raises(ValueError, match="agent.keras.*no older checkpoint"):
        kd.resume(logdir, other.model, other.dataset)


def test_trains_on_the_replay_of_a_checkpoint_without_environments(
    saved, resumed
):
    path = saved.checkpoint.folder.finished()[-1]
    replay = kd.replay.Replay.open(path, CONFIG, dtype="float32")
    assert replay.observation_space == resumed.model.observation_space
    assert len(replay) == len(saved.end["items"])
    history = resumed.model.fit(
        kd.replay.ReplayDataset(replay), steps_per_epoch=2, verbose=0
    )
    assert np.isfinite(history.history["loss"]).all()


# Other backends and dtypes.


def test_goes_on_in_another_dtype(saved):
    run = make(saved.logdir, dtype="mixed_bfloat16")
    resume(run)
    for one, two in zip(
        run.model.trainable_variables,
        keras.saving.load_model(
            saved.checkpoint.folder.finished()[2] / "agent.keras"
        ).trainable_variables,
        strict=True,
    ):
        np.testing.assert_array_equal(to_numpy(one), to_numpy(two))
    np.testing.assert_array_equal(
        run.replay.sample(3)["step_id"].shape, (3, CONFIG.batch_length + 1)
    )


PORTABLE = GOLDEN / "portable_run"


def make_portable(logdir):
    run = make(logdir, tiny_config(lr=1e-4, warmup=0), run_eagerly=True)
    # A new critic's values are rounding errors times bins of 5e8, and modes of
    # equal classes are decided by rounding.
    run.model.load_official_weights(agents.random_weights(run.model))
    run.model.sample_noise = lambda size, length: agents.random_noise(
        run.model, batch_size=size
    )
    return run


def test_goes_on_with_a_run_of_another_backend(tmp_path):
    # Saved on JAX after two updates, with the loss of the two after that.
    run = make_portable(PORTABLE)
    resume(run)
    expected = np.load(PORTABLE / "expected.npz")
    assert int(run.model.optimizer.iterations) == 2
    if keras.backend.backend() != "jax":  # It would compile for a while.
        history = run.model.fit(
            run.dataset, steps_per_epoch=1, epochs=2, verbose=0
        ).history
        np.testing.assert_allclose(history["loss"], expected["loss"], rtol=1e-4)
    else:
        for _ in range(2):
            run.dataset.draw()
    np.testing.assert_array_equal(
        run.replay.sample(8)["step_id"], expected["step_id"]
    )


# Processes.


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_kill_at_any_time_leaves_a_good_checkpoint(tmp_path):
    here = pathlib.Path(__file__).parent
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-W", "ignore", here / "killed.py", tmp_path, "8"],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(here.parent), *sys.path]),
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    rounds = [
        tuple(map(int, line.split())) for line in done.stdout.split("\n")[:-1]
    ]
    generations, unfinished = zip(*rounds, strict=True)
    assert len(rounds) == 8
    assert list(generations) == sorted(generations)
    assert generations[-1] > 3  # Three were written before the first kill.
    assert sum(unfinished) > 0  # Some were killed in the middle.


if __name__ == "__main__":
    # Makes the files: KERAS_BACKEND=jax PYTHONPATH=.:tests python <this file>
    shutil.rmtree(PORTABLE, ignore_errors=True)
    agent = make_portable(PORTABLE)
    agent.model.fit(
        agent.dataset,
        steps_per_epoch=2,
        epochs=1,
        callbacks=agent.callbacks,
        verbose=0,
    )
    losses = agent.model.fit(
        agent.dataset, steps_per_epoch=1, epochs=2, verbose=0
    ).history["loss"]
    np.savez(
        PORTABLE / "expected.npz",
        loss=losses,
        step_id=agent.replay.sample(8)["step_id"],
    )
