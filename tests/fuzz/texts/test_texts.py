"""Damaged texts end in a result or in one line; and a reader that does not do so is found out."""

import subprocess
import sys
from pathlib import Path

import numpy as np

from tests.fuzz.texts.damage import HOSTILE, damaged

COUNT = 1000

BAD_READERS = """
import sys, time
from pathlib import Path
from daedal.errors import ProgramError
from tests.fuzz.texts.__main__ import Limits, run
from tests.fuzz.texts.readers import NotOneLine, Reader

def hang(path):
    time.sleep(100)

def eat(path):
    return [bytearray(1 << 28) for _ in range(16)]

def fail(error):
    def read(path):
        raise error
    return read

bad = {"hang": hang, "eat": eat, "defect": fail(KeyError("x")), "python": fail(ValueError("invalid literal")),
       "lines": fail(ProgramError("two\\nlines\\n".join(["word"] * 500))), "good": fail(ProgramError("it must be so"))}
for name, read in bad.items():
    reader = Reader(name, ".txt", read, lambda: [b"a text of words"])
    counts, failed = run([reader], 1, range(2), Limits(1, 512), Path(sys.argv[1]))
    print(name, failed, sum(counts.values()))
"""


def run_python(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)


def test_damaged_texts_end_in_one_line(seed: int, tmp_path: Path) -> None:
    words = ["--count", str(COUNT), "--seed", str(seed), "--keep", str(tmp_path), "--seconds", "60"]
    run = run_python("-m", "tests.fuzz.texts", *words)
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"{COUNT} damaged texts, 0 failed" in run.stdout


def test_what_is_neither_is_found_out(tmp_path: Path) -> None:
    """Also what ends the process, or takes its memory; the texts that come next are tried as well, and those kept."""
    run = run_python("-c", BAD_READERS, str(tmp_path))
    found = [line.split() for line in run.stdout.splitlines() if not line.startswith("FAILED")]
    bad = ["hang", "eat", "defect", "python", "lines"]
    assert found == [*([name, "2", "0"] for name in bad), ["good", "0", "2"]], run.stdout + run.stderr
    assert len(list(tmp_path.iterdir())) == 2 * len(bad)


def test_texts_are_made_from_the_seed_alone() -> None:
    texts = [b"level 0 lower = 1\n" * 5, b'{"a": [1, 2]}']
    made = [[damaged(texts[0], texts, np.random.default_rng([seed, k])) for k in range(200)] for seed in (1, 1, 2)]
    assert made[0] == made[1] != made[2]
    assert len(set(made[0])) > 150
    assert sum(any(word in text for word in HOSTILE if len(word) > 8) for text in made[0]) > 20
