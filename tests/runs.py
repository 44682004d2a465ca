"""Logs of runs, written by hand."""

import json
import pathlib

import numpy as np

from keras_dreamer_cli.plots.logs import Run

CONFIG = {"size": "1m", "deter": 512, "lr": 4e-5, "loss_scales": {"rec": 1.0}}


def start(time=0.0, seed=0, **config):
    """Returns the first line of a log."""
    return {
        "event": "start",
        "time": time,
        "keras_dreamer": "0.1",
        "keras": "3.15",
        "backend": "jax",
        "seed": seed,
        "config": {**CONFIG, **config},
    }


def episode(steps, value, time=1.0):
    """Returns the line of an episode; an agent step is two env steps."""
    return {
        "event": "episode",
        "time": time,
        "agent_steps": steps // 2,
        "env_steps": steps,
        "stream": 0,
        "return": value,
        "length": 10,
    }


def epoch(steps, loss, time=1.0, **numbers):
    """Returns the line of an epoch."""
    return {
        "event": "epoch",
        "time": time,
        "epoch": 0,
        "updates": steps // 4,
        "agent_steps": steps // 2,
        "env_steps": steps,
        "loss": loss,
        "loss/rew": loss / 2,
        "rep_ent": 3.0,
        **numbers,
    }


def write_log(logdir, *events, settings=None):
    """Writes `log.jsonl` and, if given, `settings.json`."""
    logdir.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(event) + "\n" for event in events]
    (logdir / "log.jsonl").write_text("".join(lines))
    if settings:
        (logdir / "settings.json").write_text(json.dumps(settings))


def make_run(
    name="run", env="gym:A-v0", seed=0, steps=(), returns=(), **settings
):
    """Returns a `Run` with episodes and one epoch at each of them."""
    steps, returns = np.asarray(steps, float), np.asarray(returns, float)
    episodes = {"env_steps": steps, "agent_steps": steps, "return": returns}
    epochs = {"env_steps": steps, "updates": steps / 4, "loss": returns / 10}
    return Run(
        pathlib.Path(name),
        env,
        seed,
        {"size": "1m", "deter": 512, "lr": 4e-5, **settings},
        {"keras_dreamer": "0.1", "keras": "3.15", "backend": "jax"},
        episodes,
        epochs if len(steps) else {},
        90.0,
    )
