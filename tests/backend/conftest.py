"""Tests of whole agents spend their time in compilers."""

import agents
import pytest


@pytest.fixture(scope="module")
def quick_backend():
    with agents.quick_backend():
        yield
