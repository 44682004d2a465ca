import math
import sys

import pytest

from keras_dreamer.optional import optional


def test_what_is_installed_is_imported():
    assert optional("math", "extra") is math


def test_what_is_missing_is_named_with_the_fix(monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ImportError, match=r"wandb is not.*dreamer\[charts\]"):
        optional("wandb", "charts")
