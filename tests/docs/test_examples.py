"""The Python examples of the pages run as they are, on the emulator."""

import re
from pathlib import Path
from runpy import run_path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def example(page: str, tmp_path: Path) -> Path:
    """A file with all Python of a page, one block behind the other, for the emulator."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    source = "\n".join(blocks).replace('"verilator"', '"emulator"').replace(', memory="ideal"', "")
    path = tmp_path / "example.py"
    path.write_text(source)
    return path


@pytest.mark.parametrize("page", ["README.md", "docs/kernels.md", "docs/systems.md", "docs/tutorial.md"])
def test_examples_run(page: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_path(str(example(page, tmp_path)), run_name="example")
    assert "cycles" in capsys.readouterr().out
