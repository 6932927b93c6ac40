"""``daedal bench`` and ``daedal report`` as commands."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread
from typing import ClassVar
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner, Result

from daedal.bench import registry
from daedal.bench.report import run_page
from daedal.bench.report.document import load
from daedal.bench.report.run_page import shortened
from daedal.bench.run import Setting
from daedal.bench.workloads.models import WORKLOADS
from daedal.cli import cli
from daedal.hw.config.core import Config

WANTED = {"workload", "distribution", "config", "memory", "placement", "cycles", "limit_cycles", "limit_share",
          "line_share", "row_share", "stalls"}  # fmt: skip


def invoke(*words: str) -> Result:
    return CliRunner().invoke(cli, words)


@pytest.mark.parametrize(
    "wrong",
    [
        ["bench", "nonsense"],
        ["bench", "--memory", "slow"],
        ["bench", "--distribution", "normal"],
        ["bench", "--placements", "0"],
        ["bench", "--config", "huge"],
        ["bench", "--data", "nowhere"],
        ["bench", "--memory", "litedram-ddr3-x16", "--config", "wide"],
        ["report", "--memory", "litedram-ddr3-x64", "--config", "ddr3"],
        ["report", "sweep"],
        ["report", "--memory", "ideal:latency=0"],
        ["report", "--memory", "hbm2e"],
        ["bench", "rm1", "--memory", "lpddr4x"],
        ["report", "--memory", "ideal:stall=0.1", "--target", "model"],
        ["bench", "rm1", "--memory", "hbm2e:channels=4", "--target", "model"],
    ],
)
def test_wrong_usage_is_status_2(wrong) -> None:
    assert invoke(*wrong).exit_code == 2


@pytest.mark.parametrize(("verdict", "status"), [("", 0), ("3 rows were read for 4 indices", 1)])
def test_status_and_json(monkeypatch, tmp_path: Path, verdict, status) -> None:
    row = {"suite": "rm2", "workload": "rm2", "memory": "ideal", "bit_exact": True, "cycles": 5, "verdict": verdict}
    monkeypatch.setattr(registry, "run", lambda suite, order, say: iter([row]))
    result = invoke("bench", "rm2", "--json", str(tmp_path / "new" / "x.json"))
    assert result.exit_code == status
    found = json.loads((tmp_path / "new" / "x.json").read_text())
    assert found["results"] == {"rm2": [row]} and found["schema"] == 1
    assert (verdict in result.output) == bool(verdict) or not verdict


def test_a_file_that_cannot_be_written(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(registry, "run", lambda suite, order, say: iter([{"workload": "rm2"}]))
    (tmp_path / "file").write_text("")
    result = invoke("bench", "rm2", "--json", str(tmp_path / "file" / "x.json"))
    assert result.exit_code == 1 and "cannot be written" in result.output


@pytest.mark.rtl
def test_a_machine_that_needs_several_launches(tmp_path: Path) -> None:
    result = invoke("bench", "kaggle", "--quick", "--no-host", "--config", "minimum", "--distribution", "uniform",
                    "--json", str(tmp_path / "x.json"))  # fmt: skip
    assert result.exit_code == 0, result.output
    (row,) = json.loads((tmp_path / "x.json").read_text())["results"]["kaggle"]
    assert (row["launches"], row["bit_exact"], row["verdict"]) == (4, True, "")
    assert 0 < row["limit_share"] <= 1


@pytest.mark.rtl
@pytest.mark.slow
def test_small_workloads_on_the_rtl(tmp_path: Path) -> None:
    names = ["rm3", "kaggle", "text", "reuse21", "gather"]
    result = invoke("bench", *names, "--quick", "--no-host", "--distribution", "stride", "--placements", "2",
                    "--json", str(tmp_path / "x.json"))  # fmt: skip
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "x.json").read_text())["results"]
    assert list(found) == names
    for name in names:
        assert [row["placement"] for row in found[name]] == [0, 1]
        for row in found[name]:
            assert row.keys() >= WANTED
            assert row["bit_exact"] is True and row["rows"] == row["lookups"] and row["launches"] == 1
            assert 0 < row["row_share"] < row["line_share"] < 1
            assert row["limit_cycles"] >= row["lines_read"] + row["lines_written"]
            assert row["limit_share"] == pytest.approx(row["limit_cycles"] / row["cycles"])
    # Straight after the reset no row is fetched before memories have been swept.
    assert all(row["cycles"] < row["limit_cycles"] + Config.preset("ddr3").vector_beats for row in found["gather"])
    assert {row["distribution"] for row in found["text"]} == {"own"}
    assert {row["distribution"] for row in found["rm3"]} == {"stride"}
    assert {row["data"] for row in found["reuse21"]} == {"stand-in: zipf"}


@pytest.mark.rtl
@pytest.mark.slow
def test_small_structures_on_the_rtl(tmp_path: Path) -> None:
    names = ["spmm-cora", "mp-cora", "gcn-cora", "kg-codex-transe", "kg-codex-distmult", "attn"]
    result = invoke("bench", *names, "--quick", "--no-host", "--json", str(tmp_path / "x.json"))
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "x.json").read_text())["results"]
    for name in names:
        (row,) = found[name]
        assert row.keys() >= {*WANTED, "lane_cycles", "lane_share"}
        assert row["bit_exact"] is True and row["launches"] == 1
        assert row["equal_to"] == ("specification" if name[:2] in ("mp", "kg") else "PyTorch")
        assert 0 < row["limit_share"] <= 1
        assert (row["lane_share"] is None) == (name == "attn") or 0 < row["lane_share"] <= 1


@pytest.mark.rtl
def test_a_result_that_is_not_pytorchs_is_an_error(monkeypatch) -> None:
    from daedal.bench import run

    monkeypatch.setattr(run, "first_difference", lambda ours, theirs: "element [0]")
    result = invoke("bench", "gather", "--quick", "--no-host", "--distribution", "fixed")
    assert result.exit_code == 1
    assert "not PyTorch's: element [0]" in result.output


def test_a_short_workload_is_still_the_workload() -> None:
    assert shortened(WORKLOADS["text"], 4).batch == 4
    assert shortened(WORKLOADS["rm1"], 4).tables == WORKLOADS["rm1"].tables


@pytest.mark.parametrize(("memory", "checked"), [("hbm2e", "unchecked on"), ("litedram-ddr3-x16", "compared with")])
def test_a_page_of_a_prediction(tmp_path: Path, memory: str, checked: str) -> None:
    page = tmp_path / "page.html"
    result = invoke("report", "gather", "--target", "model", "--memory", memory, "-o", str(page))
    assert result.exit_code == 0, result.output
    text = page.read_text()
    assert "predicted by target model" in text and checked in text
    assert "Equal to PyTorch, bit for bit." in text and "8,192" in text
    assert text.count("<svg") == 2 and "over time" not in text


def test_memories_without_rtl_on_the_model(tmp_path: Path) -> None:
    out = tmp_path / "x.json"
    result = invoke("bench", "rm3", "--quick", "--no-host", "--target", "model", "--memory", "hbm2e", "--memory",
                    "lpddr4x", "--distribution", "zipf", "--json", str(out))  # fmt: skip
    assert result.exit_code == 0, result.output
    rows = load(out)["results"]["rm3"]
    assert [(row["memory"], row["config"]) for row in rows] == [("hbm2e", "hbm"), ("lpddr4x", "wide-lpddr4x")]
    assert all(row["predicted"] and row["bit_exact"] and 0 < row["line_share"] <= 1 for row in rows)


@pytest.fixture(scope="module")
def written(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a machine whose traced model the tests of waveforms need as well."""
    path = tmp_path_factory.mktemp("page") / "page.html"
    result = invoke("report", "gather", "--batch", "1", "--config", str(root / "docs" / "tiny.toml"), "-o", str(path))
    assert result.exit_code == 0, result.output
    return path


@pytest.mark.rtl
@pytest.mark.slow
def test_a_page_of_a_run(written: Path) -> None:
    text = written.read_text()
    assert text.count("<svg") == 3
    assert "instruction" in text or "event" in text
    assert "Equal to PyTorch, bit for bit." in text
    for heading in ("Queues and ports over time", "Program of the access unit", "Roofline"):
        assert heading in text
    assert not re.search(r"""<(script|link|iframe)|@import|https?://(?!www\.w3\.org/)""", text)


@pytest.fixture(scope="module")
def chromium() -> str:
    names = ("chromium", "chromium-browser", "google-chrome", "chrome-headless-shell")
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"none of {', '.join(names)} is installed")
    return found


class Refusing(StreamRequestHandler):
    """A proxy that has nothing and notes what it is asked for."""

    asked: ClassVar[list[str]] = []

    def handle(self) -> None:
        request = self.rfile.readline().decode().split()
        self.asked.extend(request[1:2])
        while self.rfile.readline().strip():  # the headers
            pass
        self.wfile.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


OF_THE_BROWSER = (".google.com", ".googleapis.com", ".gstatic.com", ".gvt1.com")
"""Hosts that Chromium asks for itself, whatever the page."""


def browse(chromium: str, page: Path, profile: Path) -> tuple[str, str, list[str]]:
    """Load the page with a proxy for its only network: document, console, and what was asked for."""
    Refusing.asked.clear()
    with ThreadingTCPServer(("127.0.0.1", 0), Refusing) as proxy:
        Thread(target=proxy.serve_forever, daemon=True).start()
        done = subprocess.run(
            [
                chromium, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
                "--disable-background-networking", "--disable-component-update", "--disable-quic",
                f"--proxy-server=127.0.0.1:{proxy.server_address[1]}", f"--user-data-dir={profile}",
                "--enable-logging=stderr", "--dump-dom", page.as_uri(),
            ],
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        proxy.shutdown()
    assert done.returncode == 0, done.stderr
    console = "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)
    hosts = [urlsplit(path if "://" in path else f"//{path}").hostname or path for path in Refusing.asked]
    return done.stdout, console, [host for host in hosts if not host.endswith(OF_THE_BROWSER)]


@pytest.mark.rtl
@pytest.mark.slow
def test_a_page_in_a_browser_without_a_network(written: Path, chromium: str, tmp_path: Path) -> None:
    document, console, asked = browse(chromium, written, tmp_path)
    assert document.count("<svg") == 3 and "Program of the execute unit" in document
    assert (console, asked) == ("", [])


def test_a_page_that_needs_a_network_is_noticed(chromium: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text('<img src="http://pictures.example/a.png"><script>missing()</script>', encoding="utf-8")
    _, console, asked = browse(chromium, page, tmp_path / "profile")
    assert "missing is not defined" in console
    assert asked == ["pictures.example"]


@pytest.mark.rtl
def test_what_a_page_says_of_its_run(monkeypatch) -> None:
    """The same page without its waveform, whose model takes minutes to build."""
    real = run_page.measure
    monkeypatch.setattr(run_page, "measure", lambda workload, distribution, setting, wave: real(
        workload, distribution, setting))  # fmt: skip
    monkeypatch.setattr(run_page, "read_timeline", lambda *_: {"queues": {"tokens": ([0.0, 9.0], [1.0, 2.0])}})
    setting = Setting(Config.preset("ddr3"), "ideal:latency=33", seed=3)
    text, run = run_page.report(shortened(WORKLOADS["rm3"], 2), "zipf", setting)
    assert "Daedal: rm3, zipf, ddr3, ideal:latency=33" in text
    assert f"{run.row['cycles']:,}" in text and f"{run.row['limit_cycles']:,}" in text
    assert "ideal: latency 33 cycles, 1 lines per cycle" in text and f"{setting.config.hash:#010x}" in text
    assert text.count("<svg") == 3 and "instruction 0 code" in text and "level 0 lower = " in text
    run.row["verdict"] = "<wrong>"
    assert '<p class="wrong">&lt;wrong&gt;</p>' in run_page.page_of(run, setting, {}, [run.row])
