"""``import daedal``: cheap, complete, and typed errors that users can catch as they expect."""

import importlib
import subprocess
import sys

import pytest

import daedal
from daedal import errors

HEAVY = (
    "torch",
    "amaranth",
    "xdsl",
    "numpy",
    "click",
    "daedal.hw",
    "daedal.compiler",
    "daedal.runtime",
    "daedal.driver",
    "daedal.cosim",
)
"""What ``import daedal`` must not load."""
BUILTINS = {"IndexOutOfRange": IndexError, "InvalidOffsets": ValueError}
"""Errors that are also one of Python's own."""


def test_import_is_cheap() -> None:
    code = "import sys, daedal; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "daedal.errors" in loaded
    assert not set(HEAVY) & set(loaded)


@pytest.mark.parametrize("name", daedal.__all__)
def test_every_public_name_exists(name: str) -> None:
    assert getattr(daedal, name) is not None
    assert name in dir(daedal)


def test_compile_stays_the_function_after_its_package_is_imported() -> None:
    importlib.import_module("daedal.compiler")
    assert callable(daedal.compile)


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="module 'daedal' has no attribute 'nonsense'"):
        _ = daedal.nonsense


@pytest.mark.parametrize("name", sorted(set(errors.__all__) - {"DaedalError", "BoundsWarning"}))
def test_errors_derive_from_one_base(name: str) -> None:
    error = getattr(daedal, name)
    assert issubclass(error, daedal.DaedalError)
    assert issubclass(error, BUILTINS.get(name, Exception))
    assert str(error("value 3")) == "value 3"
    assert error.__doc__


def test_the_warning_is_a_user_warning() -> None:
    assert issubclass(daedal.BoundsWarning, UserWarning)
    assert not issubclass(daedal.BoundsWarning, daedal.DaedalError)
