import numpy as np
import pytest

from keras_dreamer_cli.evaluate import agent
from keras_dreamer_cli.evaluate import summary


def test_the_newest_agent_of_a_run(tmp_path):
    with pytest.raises(ValueError, match="first checkpoint.*--resume"):
        agent(tmp_path)
    for name in ("00000002", "00000003", "00000004.unfinished"):
        (tmp_path / "checkpoints" / name).mkdir(parents=True)
    newest = tmp_path / "checkpoints" / "00000003" / "agent.keras"
    assert agent(tmp_path) == newest
    (tmp_path / "agent.keras").touch()
    assert agent(tmp_path) == tmp_path / "agent.keras"


def test_summary():
    # The standard deviation is 2, the error 2 / sqrt(4) = 1.
    returns = np.array([8.0, 12.0, 8.0, 12.0]) * np.sqrt(3) / 2
    returns += 10 - returns.mean()
    assert summary("gym:A-v0", returns) == (
        "gym:A-v0: return 10.0 ± 2.0 (95 % of the mean) over 4 episodes, "
        "from 8.3 to 11.7"
    )


def test_one_episode_has_no_interval():
    text = "e: return 3.0 over 1 episodes, from 3.0 to 3.0"
    assert summary("e", np.array([3.0])) == text
