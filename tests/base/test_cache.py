"""What is kept in the cache: found whole or made anew, by several processes, some of which are killed."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from daedal.base.cache import WORKSHOP, BuildError, is_whole, keep, keep_text
from daedal.cosim.builder.library import build_library, load_library
from daedal.cosim.builder.object_cache import main as compile_or_take
from daedal.cosim.builder.rtl_library import build_verilated, make_environment

ANSWER = {"a.cpp": 'extern "C" int answer() { return 42; }\n'}
DAMAGES = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "empty": lambda path: path.write_bytes(b""),
    "zeroed": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "one bit": lambda path: path.write_bytes(path.read_bytes()[:-1] + bytes([path.read_bytes()[-1] ^ 1])),
    "a folder": lambda path: (path.unlink(), path.mkdir(), (path / "x").touch()),
    "gone": lambda path: path.unlink(),
    "a broken link": lambda path: (path.unlink(), path.symlink_to("/nowhere/at/all")),
}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OBJCACHE", make_environment()["OBJCACHE"])  # Verilator's own library is not built anew
    monkeypatch.setenv("DAEDAL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def made(folder: Path) -> Path:
    (folder / "x").write_text("what is kept")
    return folder / "x"


@pytest.mark.parametrize("of", ["it", "its digest"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_what_was_damaged_is_made_anew(cache: Path, damage: str, of: str) -> None:
    place = keep(cache / "it", made)
    assert place.read_text() == "what is kept" and is_whole(place)
    DAMAGES[damage](place if of == "it" else cache / "it.sum")
    assert not is_whole(place)
    assert keep(place, made).read_text() == "what is kept" and is_whole(place)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_library_is_built_anew(cache: Path, damage: str) -> None:
    DAMAGES[damage](build_library("x", ANSWER))
    assert load_library(build_library("x", ANSWER)).answer() == 42


def test_a_folder_with_a_file_more_or_less_is_made_anew(cache: Path) -> None:
    def folder_made(folder: Path) -> Path:
        (folder / "it" / "deep").mkdir(parents=True)
        for name in ("a", "deep/b"):
            (folder / "it" / name).write_text(name)
        return folder / "it"

    place = cache / "it"
    damages: list[Callable[[], object]] = [
        lambda: (place / "a").unlink(), lambda: (place / "c").touch(), lambda: (place / "deep" / "b").write_text("B"),
        lambda: (place / "a").rename(place / "d"), lambda: (shutil.rmtree(place), place.touch()),
    ]  # fmt: skip
    for damage in damages:
        keep(place, folder_made)
        damage()
        keep(place, folder_made)
        assert sorted(path.name for path in place.rglob("*")) == ["a", "b", "deep"] and is_whole(place)


def test_texts_are_made_once(cache: Path) -> None:
    calls = []

    def text() -> str:
        calls.append(1)
        return "β\n"

    assert [keep_text(cache / "it.v", text) for _ in range(3)] == ["β\n"] * 3
    (cache / "it.v").write_text("β")
    assert keep_text(cache / "it.v", text) == "β\n"
    assert len(calls) == 2


@pytest.mark.slow
def test_a_damaged_model_is_built_anew(cache: Path) -> None:
    """For another harness: for that which is kept, nobody needs it."""
    harness = '#include "Vmodel.h"\nextern "C" int answer() { Vmodel model; return model.a == 0 ? ANSWER : 0; }\n'

    def answer(number: int) -> int:
        files = {"run.cpp": harness.replace("ANSWER", str(number))}
        library = build_verilated("m", "module m(input a); endmodule", files, top="m", ours=False)
        found: int = load_library(library).answer()
        return found

    assert answer(1) == 1
    (path,) = cache.glob("*.model/libVmodel.a")
    path.write_bytes(path.read_bytes()[:20])
    assert answer(1) == 1 and path.stat().st_size == 20
    assert answer(2) == 2 and path.stat().st_size > 20


def test_a_damaged_precompiled_header_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is cut off in its middle the compiler may load, and crash."""
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "verilated.h").write_text("#pragma once\n#include <string>\n")
    (tmp_path / "model.cpp").write_text('#include "verilated.h"\nstd::string it() { return "it"; }\n')
    monkeypatch.setenv("DAEDAL_PRECOMPILE", "1")
    words = [str(tmp_path / "objects"), "g++", f"-I{tmp_path / 'include'}", "-Winvalid-pch", "-Werror", "-c", "-o",
             str(tmp_path / "it.o"), str(tmp_path / "model.cpp")]  # fmt: skip
    assert compile_or_take(words) == 0
    for damaged in ("*.h.gch", "*.h"):
        (path,) = (tmp_path / "objects").glob(damaged)
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        assert compile_or_take(words) == 0
        assert path.stat().st_size > 0.9 * len(whole)


def test_several_processes_repair_the_same(cache: Path) -> None:
    DAMAGES["cut"](build_library("x", ANSWER))
    with multiprocessing.get_context("fork").Pool(3) as pool:
        paths = pool.starmap(build_library, [("x", ANSWER)] * 6)
    assert len(set(paths)) == 1 and load_library(paths[0]).answer() == 42


def read_only(cache: Path) -> None:
    cache.parent.mkdir(exist_ok=True)
    cache.symlink_to("/proc")  # not even root can make a file there


def is_file(cache: Path) -> None:
    cache.write_text("")


def in_the_way(cache: Path) -> None:
    cache.mkdir()
    (cache / "it.lock").mkdir()


@pytest.mark.parametrize("spoil", [read_only, is_file, in_the_way])
def test_a_cache_that_cannot_be_written(cache: Path, spoil: Callable[[Path], None]) -> None:
    spoil(cache)
    with pytest.raises(BuildError, match=r"builds cannot be kept in .*cache: .*set DAEDAL_CACHE to a folder"):
        keep(cache / "it", made)


def test_a_full_disk(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(folder: Path) -> Path:
        with open("/dev/full", "w") as stream:
            stream.write("x")
        return folder

    with pytest.raises(BuildError, match=r"builds cannot be kept in .*: No space left on device; make room"):
        keep(cache / "it", no_room)
    assert not list(cache.glob("it-*"))
    compiler = cache.parent / "bin" / "g++"
    compiler.parent.mkdir()
    compiler.write_text("#!/bin/sh\necho fatal error: error writing to x.s: No space left on device\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", str(compiler.parent), prepend=os.pathsep)
    with pytest.raises(BuildError, match=r"No space left on device .*; make room in .* and in TMPDIR, or set"):
        build_library("x", ANSWER)


def test_errors_of_others_are_theirs(cache: Path) -> None:
    with pytest.raises(FileNotFoundError, match="/nowhere"):
        keep(cache / "it", lambda _: Path(Path("/nowhere").read_text()))


def test_a_library_that_this_system_does_not_load(tmp_path: Path) -> None:
    (tmp_path / "x.so").write_text("no library")
    with pytest.raises(BuildError, match=r"x.so cannot be loaded: .*; set DAEDAL_CACHE to a folder from which"):
        load_library(tmp_path / "x.so")


def test_the_cache_may_be_read_only_if_all_is_there(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = build_library("x", ANSWER)
    monkeypatch.setattr("daedal.base.cache._locked", lambda path: pytest.fail(f"wants to write {path}"))
    assert build_library("x", ANSWER) == path


BUILD = """
import sys
from daedal.cosim.builder.library import build_library
build_library("x", {"a.cpp": 'extern "C" int answer() { return 42; }'})
"""
SLEEPER = """#!/bin/sh
case "$*" in *-shared*) sleep 1000.25 & echo $! > {pids}; echo $$ >> {pids}; wait;; *) exec {real} "$@";; esac
"""


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_build_that_is_killed_leaves_nothing_at_work(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path, sent: signal.Signals
) -> None:
    """Neither compilers nor, once something is built again, a folder."""
    compiler, pids, real = tmp_path / "bin" / "g++", tmp_path / "pids", shutil.which("g++")
    compiler.parent.mkdir()
    compiler.write_text(SLEEPER.format(pids=pids, real=real))
    compiler.chmod(0o755)
    environment = {**os.environ, "PATH": f"{compiler.parent}{os.pathsep}{os.environ['PATH']}"}
    child = subprocess.Popen([sys.executable, "-c", BUILD], env=environment, cwd=root, stderr=subprocess.DEVNULL)
    wait_until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
    compilers = [int(word) for word in pids.read_text().split()]
    assert all(map(alive, compilers)) and len(list(cache.glob(f"*{WORKSHOP}"))) == 1
    child.send_signal(sent)
    child.wait(20)
    wait_until(lambda: not any(map(alive, compilers)))
    assert not list(cache.glob("*.so"))
    keep(cache / "something else", made)
    assert not list(cache.glob(f"*{WORKSHOP}"))
    assert load_library(build_library("x", ANSWER)).answer() == 42


def test_folders_in_which_somebody_works_stay(cache: Path) -> None:
    def during(folder: Path) -> Path:
        keep(cache / "other", made)
        assert folder.exists()
        return made(folder)

    left = cache / f"left{WORKSHOP}"
    left.mkdir(parents=True)
    keep(cache / "it", during)
    assert is_whole(cache / "it") and is_whole(cache / "other") and not left.exists()


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)
