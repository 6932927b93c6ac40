"""The package installs: a wheel from the linked layout holds every tree and runs without the sources."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from itertools import chain
from pathlib import Path

import pytest

import daedal

TREES = {
    "hw": "hw",
    "compiler": "sw/compiler",
    "runtime": "sw/runtime",
    "driver": "sw/driver",
    "cosim": "cosim",
    "fpga": "fpga",
}
"""Package of daedal -> the tree that its link points to."""
LEFT_OUT = (".*", "build", "dist", "__pycache__", "*.egg-info", "tests", "docs")
"""What the build does not need of the source tree."""


def run(*command: str | Path, cwd: Path) -> str:
    """The output of a command that must succeed, run with nothing of this process's Python settings."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run([str(word) for word in command], cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel, built from a copy of the sources so that nothing is left behind in them."""
    source, out = tmp_path_factory.mktemp("source") / "daedal", tmp_path_factory.mktemp("wheel")
    shutil.copytree(root, source, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir")
    run(sys.executable, "-m", "pip", "wheel", *options, out, source, cwd=out)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel in it; the other packages are this environment's."""
    place = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", "--without-pip", place / "venv", cwd=place)
    bin_ = place / "venv" / "bin"
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(run(bin_ / "python", "-c", code, cwd=place).strip())
    # Only the packages: the .pth files beside them (the editable install's among them) are not read.
    (site / "parent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    options = ("--quiet", "--no-deps", "--no-index", "--no-warn-script-location", "--ignore-installed")
    run(sys.executable, "-m", "pip", "--python", bin_ / "python", "install", *options, wheel, cwd=place)
    return bin_


def test_wheel_holds_every_file_of_every_tree(root: Path, wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for package, tree in {**TREES, "bench": "daedal/bench"}.items():
        files = [path.relative_to(root / tree) for path in (root / tree).rglob("*") if path.is_file()]
        wanted = {f"daedal/{package}/{path.as_posix()}" for path in files if path.suffix != ".pyc"}
        assert wanted, f"{tree} is empty"
        assert wanted <= names, f"missing in the wheel: {sorted(wanted - names)}"
    assert {"daedal/py.typed", "daedal/cli/__init__.py", "daedal/errors.py"} <= names
    assert any(name.startswith("daedal/cosim/") and name.endswith(".cpp") for name in names)


def test_wheel_holds_nothing_else(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert tops == {"daedal", f"daedal-{daedal.__version__}.dist-info"}


def test_installed_command_runs_elsewhere(installed: Path, tmp_path: Path) -> None:
    assert run(installed / "daedal", "--version", cwd=tmp_path) == f"daedal, version {daedal.__version__}\n"


def test_installed_package_is_the_wheel(installed: Path, tmp_path: Path) -> None:
    code = "import daedal, daedal.hw.config.core as c; print(daedal.__file__, c.__file__, daedal.Device)"
    for file in run(installed / "python", "-c", code, cwd=tmp_path).split()[:2]:
        assert installed.parent.resolve() in Path(file).resolve().parents


def test_pytorch_finds_the_backend_of_an_installed_package(installed: Path, tmp_path: Path) -> None:
    code = "import torch; print('daedal' in torch._dynamo.list_backends())"
    assert run(installed / "python", "-c", code, cwd=tmp_path) == "True\n"


def test_links_point_to_their_trees(root: Path) -> None:
    for package, tree in TREES.items():
        link = root / "daedal" / package
        assert link.is_symlink(), f"{link} must be a link"
        assert link.resolve() == (root / tree).resolve()


def test_lock_holds_what_the_project_asks_for(root: Path) -> None:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    lines = (root / "requirements.lock").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    pins = {canonicalize_name(name): version for name, version in pins.items()}
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    asked = {extra for text in extras["dev"] for extra in Requirement(text).extras}
    assert set(extras) - asked == {"dev", "frameworks", "tensorflow"}  # tests of these are left out without them
    texts = [*project["dependencies"], *extras["dev"], *chain.from_iterable(extras[extra] for extra in sorted(asked))]
    for wanted in map(Requirement, texts):
        if wanted.name == project["name"]:
            continue  # the other extras
        pin = pins.get(canonicalize_name(wanted.name))
        assert pin is not None, f"{wanted.name} is not in requirements.lock"
        assert pin in wanted.specifier, f"{wanted} excludes the locked {pin}"
