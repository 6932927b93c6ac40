"""What tests with TensorFlow share; only `make test-frameworks` installs it."""

import os
from collections.abc import Iterator

import pytest

import daedal

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


@pytest.fixture(scope="session")
def device() -> Iterator[daedal.Device]:
    """The golden model."""
    with daedal.Device.open("emulator", config="ddr3") as opened:
        yield opened
