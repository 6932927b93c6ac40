"""Verilator's library is compiled once for all models."""

import pytest

from daedal.cosim.object_cache import main

COMPILER = """#!/bin/sh
echo "$@" >> {log}
test -e {broken} && exit 3
while [ "$1" != -o ]; do shift; done
cat "$3" > "$2"
"""


@pytest.fixture
def compiler(tmp_path, monkeypatch):
    """A compiler that copies its source and notes how it was called; it fails if there is a file ``broken``."""
    for folder in ("include", "build"):
        (tmp_path / folder).mkdir()
    program = tmp_path / "compiler"
    program.write_text(COMPILER.format(log=tmp_path / "log", broken=tmp_path / "broken"))
    program.chmod(0o755)
    (tmp_path / "log").touch()
    (tmp_path / "include" / "verilated.cpp").write_text("library")
    (tmp_path / "include" / "verilated.h").write_text("header")
    monkeypatch.chdir(tmp_path / "build")
    return program


def compile_(tmp_path, compiler, *options, source=None):
    source = source or tmp_path / "include" / "verilated.cpp"
    return main([str(tmp_path / "objects"), str(compiler), *options, "-MMD", "-c", "-o", "it.o", str(source)])


def calls(tmp_path):
    return (tmp_path / "log").read_text().splitlines()


def test_the_library_is_compiled_once(tmp_path, compiler):
    for _ in range(2):
        assert compile_(tmp_path, compiler) == 0
        assert (tmp_path / "build" / "it.o").read_text() == "library"
        (tmp_path / "build" / "it.o").unlink()
    assert len(calls(tmp_path)) == 1
    assert [file.suffix for file in (tmp_path / "objects").iterdir()] == [".o"]


def test_options_headers_and_sources_tell_objects_apart(tmp_path, compiler):
    compile_(tmp_path, compiler)
    compile_(tmp_path, compiler, "-O2")
    (tmp_path / "include" / "verilated.h").write_text("another header")
    compile_(tmp_path, compiler)
    (tmp_path / "include" / "verilated.cpp").write_text("another library")
    compile_(tmp_path, compiler)
    assert len(calls(tmp_path)) == 4
    assert (tmp_path / "build" / "it.o").read_text() == "another library"


@pytest.mark.parametrize("name", ["build/verilated_model.cpp", "include/verilator.cpp"])
def test_models_and_what_includes_them_are_compiled_each_time(tmp_path, compiler, name):
    """Such as a program around a model, which lies anywhere."""
    source = tmp_path / name
    source.write_text("model")
    for _ in range(2):
        assert compile_(tmp_path, compiler, source=source) == 0
    assert calls(tmp_path) == [f"-MMD -c -o it.o {source}"] * 2
    assert not (tmp_path / "objects").exists()


def test_what_the_compiler_refuses_is_not_kept(tmp_path, compiler):
    (tmp_path / "broken").touch()
    assert compile_(tmp_path, compiler) == 3
    assert list((tmp_path / "objects").iterdir()) == []
    (tmp_path / "broken").unlink()
    assert compile_(tmp_path, compiler) == 0
