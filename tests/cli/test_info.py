import keras

from keras_dreamer_cli import info


def test_says_what_a_report_needs(capsys):
    info.run(None)
    rows = dict(
        line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()
    )
    assert rows["backend"] == keras.backend.backend()
    assert rows["keras"] == keras.__version__
    assert rows["python"].startswith("3.")
    assert rows["dtype"] == "float32"
    assert rows["devices"]


def test_missing_packages_are_named(monkeypatch):
    monkeypatch.setattr(info, "_PACKAGES", ["keras", "no-such-package"])
    assert info.facts()["no-such-package"] == "not installed"


def test_devices_that_cannot_be_listed(monkeypatch):
    def fail():
        raise NotImplementedError

    monkeypatch.setattr(keras.distribution, "list_devices", fail)
    assert info.devices() == info.backend.device()
