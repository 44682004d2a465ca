"""What every test gets: the backend in the header, a clean dtype policy."""

import keras
import pytest


def pytest_report_header():
    return f"keras {keras.__version__} on {keras.backend.backend()}"


@pytest.fixture(autouse=True)
def restore_dtype_policy():
    policy = keras.config.dtype_policy()
    yield
    keras.config.set_dtype_policy(policy)
