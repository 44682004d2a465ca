import importlib.util
import pathlib

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def example():
    path = EXAMPLES / "custom_env.py"
    spec = importlib.util.spec_from_file_location("custom_env", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings("ignore:.*WARN.*:UserWarning")  # Bounds, advice.
def test_environment_follows_gymnasiums_rules(example):
    check_env(example.Line(), skip_render_check=True)


def test_walking_to_the_target_is_best(example):
    env = example.Line()
    (point, target), _ = env.reset(seed=0)
    total, ended = 0.0, False
    while not ended:
        move = np.clip(target - point, -0.3, 0.3)
        (point, target), reward, _, ended, _ = env.step(np.array([move]))
        total += reward
    assert point == target and reward == pytest.approx(1.0)
    assert 12 < total <= 15


@pytest.mark.slow  # The example's own network, which compiles for a while.
def test_example_trains(example, capsys):
    # The first update after 8 * 16 + 4 * 16 steps, one more every 4 steps.
    before, after, model = example.train(steps=200)
    printed = capsys.readouterr().out
    assert "before training" in printed and "after training" in printed
    assert np.isfinite([before, after]).all()
    assert int(model.optimizer.iterations) == 3
