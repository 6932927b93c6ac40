"""Verilator's library is compiled once for all models, and so are its headers if that is wanted."""

import pytest

from daedal.cosim.builder.object_cache import main

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
    monkeypatch.setenv("DAEDAL_PRECOMPILE", "0")
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
    assert {file.suffix for file in (tmp_path / "objects").iterdir()} == {".o", ".sum", ".lock"}


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
    assert {file.suffix for file in (tmp_path / "objects").iterdir()} == {".lock"}
    (tmp_path / "broken").unlink()
    assert compile_(tmp_path, compiler) == 0


@pytest.fixture
def header(tmp_path, monkeypatch):
    """Headers are precompiled, and this is where Verilator's are."""
    monkeypatch.setenv("DAEDAL_PRECOMPILE", "1")
    return f"-I{tmp_path / 'include'}"


def test_headers_are_compiled_once_for_the_same_options(tmp_path, compiler, header):
    source = tmp_path / "build" / "model.cpp"
    source.write_text("model")
    for options in (["-O1", header], [header, "-O1"], ["-O2", header]):
        assert compile_(tmp_path, compiler, *options, source=source) == 0
        assert (tmp_path / "build" / "it.o").read_text() == "model"
    first, model, again, other, last = calls(tmp_path)
    loaded = model.split()[1]
    assert first.startswith(f"-O1 {header} -x c++-header -o ") and first.endswith(loaded)
    assert model == f"-include {loaded} -O1 {header} -MMD -c -o it.o {source}"
    assert again == f"-include {loaded} {header} -O1 -MMD -c -o it.o {source}"
    assert other.startswith(f"-O2 {header} -x c++-header -o ") and loaded not in other + last
    (tmp_path / "include" / "verilated.h").write_text("another header")
    compile_(tmp_path, compiler, "-O1", header, source=source)
    assert len(calls(tmp_path)) == 7


@pytest.mark.parametrize("option", ["-fprofile-use", "-DDAEDAL_MODEL='\"x\"'"])
def test_nor_are_headers_precompiled_for_one_model_alone(tmp_path, compiler, header, option):
    source = tmp_path / "build" / "model.cpp"
    source.write_text("model")
    assert compile_(tmp_path, compiler, header, option, source=source) == 0
    assert calls(tmp_path) == [f"{header} {option} -MMD -c -o it.o {source}"]


def test_a_header_that_is_refused_is_read_as_text(tmp_path, compiler, header):
    (tmp_path / "broken").touch()
    source = tmp_path / "build" / "model.cpp"
    source.write_text("model")
    assert compile_(tmp_path, compiler, header, source=source) == 3
    assert calls(tmp_path)[1:] == [f"{header} -MMD -c -o it.o {source}"]


def test_a_precompiled_header_changes_no_object(tmp_path, monkeypatch):
    """By the real compiler, which refuses headers that do not fit."""
    include = tmp_path / "include"
    include.mkdir()
    (include / "verilated.h").write_text("#pragma once\ninline int twice(int n) { return 2 * n; }\n")
    (tmp_path / "model.cpp").write_text('#include "verilated.h"\nint four() { return twice(2); }\n')
    made = {}
    for wanted in ("0", "1"):
        monkeypatch.setenv("DAEDAL_PRECOMPILE", wanted)
        options = ["-O1", f"-I{include}", "-Winvalid-pch", "-Werror", "-c", "-o", str(tmp_path / "it.o")]
        assert main([str(tmp_path / "objects"), "g++", *options, str(tmp_path / "model.cpp")]) == 0
        made[wanted] = (tmp_path / "it.o").read_bytes()
    assert made["0"] == made["1"]
    assert [file.suffix for file in (tmp_path / "objects").iterdir()].count(".gch") == 1
