import numpy as np

from keras_dreamer_cli.evaluate import summary


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
