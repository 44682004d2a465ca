from keras_dreamer_cli import report


def logs(**more):
    return {
        "env_steps": 4000,
        "env_steps/s": 50.0,
        "updates": 1000,
        "updates/s": 12.5,
        "episode/return": 21.0,
        "loss": 3.5,
        **more,
    }


def test_one_line_with_the_time_left(capsys):
    callback = report.Report(10_000)
    callback.on_train_begin()
    callback.on_epoch_end(0, logs())
    printed = capsys.readouterr().out
    # 6000 steps at 50 a second are two minutes.
    assert printed.endswith("12.5 updates/s  50 env steps/s  0:02:00 left\n")
    assert "4,000 of 10,000 env steps" in printed and "21.0" in printed


def test_evaluations_are_shown(capsys):
    callback = report.Report(10_000)
    callback.on_train_begin()
    callback.on_epoch_end(0, logs(**{"evaluation/return": 30.25}))
    callback.on_epoch_end(1, logs(**{"evaluation/return": float("nan")}))
    first, second = capsys.readouterr().out.splitlines()
    assert "return    21.0  evaluation 30.2  loss" in first
    assert "evaluation" not in second


def test_without_steps_nobody_knows(capsys):
    callback = report.Report(10_000)
    callback.on_train_begin()
    callback.on_epoch_end(0, logs(**{"env_steps/s": 0.0}))
    assert "? left" in capsys.readouterr().out
