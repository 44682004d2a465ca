import importlib.util
import sys
import types

import pytest

from keras_dreamer_cli.backend import choose_backend


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """As before Keras is imported, without KERAS_BACKEND."""
    monkeypatch.setenv("KERAS_BACKEND", "")  # Restored after the test.
    monkeypatch.delitem(sys.modules, "keras")
    return monkeypatch


def find_only(monkeypatch, *names):
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: name in names or None
    )


def environ():
    import os

    return os.environ["KERAS_BACKEND"]


def test_the_argument_sets_the_variable():
    assert choose_backend("torch") == environ() == "torch"


def test_the_variable_counts_without_an_argument(fresh):
    fresh.setenv("KERAS_BACKEND", "tensorflow")
    assert choose_backend(None) == environ() == "tensorflow"


def test_they_may_agree(fresh):
    fresh.setenv("KERAS_BACKEND", "torch")
    assert choose_backend("torch") == "torch"


def test_they_must_not_disagree(fresh):
    fresh.setenv("KERAS_BACKEND", "torch")
    message = "must agree.*--backend jax, KERAS_BACKEND=torch"
    with pytest.raises(ValueError, match=message):
        choose_backend("jax")
    assert environ() == "torch"


def test_without_both_the_first_installed_one(fresh):
    find_only(fresh, "tensorflow", "torch")
    assert choose_backend(None) == environ() == "tensorflow"


def test_the_preferred_one_is_looked_for_first(fresh):
    find_only(fresh, "jax", "torch")
    assert choose_backend(None, preferred="torch") == "torch"
    fresh.setenv("KERAS_BACKEND", "")
    assert choose_backend(None, preferred="tensorflow") == "jax"


def test_the_argument_goes_before_the_preferred_one():
    assert choose_backend("jax", preferred="torch") == "jax"


def test_none_installed(fresh):
    find_only(fresh)
    with pytest.raises(ValueError, match="needs a backend.*pip install"):
        choose_backend(None)


def test_a_loaded_keras_cannot_change(fresh):
    backend = types.SimpleNamespace(backend=lambda: "jax")
    loaded = types.SimpleNamespace(backend=backend)
    fresh.setitem(sys.modules, "keras", loaded)
    assert choose_backend("jax") == "jax"
    fresh.setenv("KERAS_BACKEND", "")
    with pytest.raises(ValueError, match="before Keras.*torch.*runs on jax"):
        choose_backend("torch")
