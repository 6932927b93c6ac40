"""Pages: length, links, paths, commands, dates, words that are no terms."""

import ast
import os
import re
import shlex
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from daedal.cli import cli

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

MOST_LINES = {"README.md": 120, "CONTRIBUTING.md": 200, "CHANGELOG.md": 1000}
"""Page -> lines, where it is not ``LINES``, or ``DECISION_LINES`` for a decision."""

LINES, DECISION_LINES = 200, 80

CHANGELOG_LINE = 120
"""Characters of an unreleased line of the changelog."""

PAGES = sorted([*DOCS.rglob("*.md"), *(ROOT / name for name in MOST_LINES)])
PRESENT = [page for page in PAGES if page.parent.name != "decisions" and page.name != "CHANGELOG.md"]
"""Pages that say what is true today: no dates, no past."""

MONTHS = "January|February|March|April|June|July|August|September|October|November|December"
DATES = re.compile(rf"\b\d{{1,2}} ({MONTHS}|May)\b|\b({MONTHS}|May) \d{{4}}\b|\b20\d\d-\d\d-\d\d\b")

NO_TERMS = re.compile(
    r"\bknown late\b|\bin turn\b|\bnobody\b|\bwhoever\b|\bwhat is there\b|\bno longer\b", re.IGNORECASE
)
"""What is no term of the field, or tells a story."""

_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)+\.(?:py|h|cpp|c|asm|toml|json|md|svg)|\b[a-z_]+\.(?:py|cpp)\b(?!\w)")

MADE = ("build/", "run.", ".surfer/")
"""Beginnings of paths of files that a command makes."""

EXAMPLES = {"level.py", "my.toml", "pooled.py"}
"""Files of the reader's own."""


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def every(pages: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("page", pages, ids=name)


@cache
def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@cache
def files() -> frozenset[str]:
    """Every file of the project, as a path from the top; links to folders are not followed."""
    skipped = {".git", ".venv", "build", "dist", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [each for each in folders if each not in skipped]
        found += [os.path.relpath(Path(folder) / each, ROOT) for each in names]
    return frozenset(found)


def headings(page: Path) -> set[str]:
    """Anchors of a page's headings, as GitHub makes them."""
    prose = _FENCE.sub("", text_of(page))
    titles = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@every(PAGES)
def test_pages_are_short(page: Path) -> None:
    usual = DECISION_LINES if page.parent.name == "decisions" else LINES
    most = MOST_LINES.get(page.name, usual)
    lines = len(text_of(page).splitlines())
    assert lines <= most, f"{name(page)} must have at most {most} lines, not {lines}: split it by what readers look for"


@every(PAGES)
def test_links_lead_somewhere(page: Path) -> None:
    for target in _LINK.findall(_FENCE.sub("", text_of(page))):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), f"{name(page)} links to {target}, which is not there"
        if anchor and found.suffix == ".md":
            assert anchor in headings(found), f"{name(page)} links to {target}, a heading that is not there"


def test_the_index_has_every_page() -> None:
    index = DOCS / "index.md"
    listed = {(DOCS / target).resolve() for target in _LINK.findall(text_of(index))}
    missing = [
        name(page) for page in PAGES if page.parent in (DOCS, DOCS / "decisions") and page not in {*listed, index}
    ]
    assert not missing, f"docs/index.md must list {', '.join(missing)}"


@every(PRESENT)
def test_paths_in_pages_exist(page: Path) -> None:
    for code in _CODE.findall(_FENCE.sub("", text_of(page))):
        for path in _PATH.findall(code):
            if path.startswith(MADE) or path in EXAMPLES or re.search(r"[A-Z]{4}|\.\.", path):
                continue
            found = any(each == path or each.endswith(f"/{path}") for each in files())
            assert found or (ROOT / path).exists(), f"{name(page)} names {path}, which is not there"


@every(PRESENT)
def test_nothing_is_dated(page: Path) -> None:
    found = DATES.search(text_of(page))
    assert found is None, f"{name(page)} must say what is true today, without {found and found[0]!r}"


@every(PRESENT)
def test_words_are_the_fields(page: Path) -> None:
    found = NO_TERMS.search(text_of(page))
    assert found is None, f"{name(page)} has {found and found[0]!r}: use the field's term, in the present tense"


def test_docstrings_of_the_package_have_no_dates() -> None:
    for path in sorted((ROOT / "daedal").glob("*.py")) + sorted((ROOT / "daedal" / "bench").rglob("*.py")):
        found = DATES.search(text_of(path))
        assert found is None, f"{name(path)} has {found and found[0]!r}"


def test_unreleased_lines_of_the_changelog_are_short() -> None:
    unreleased = text_of(ROOT / "CHANGELOG.md").partition("\n## Unreleased\n")[2].partition("\n## ")[0]
    for line in filter(None, unreleased.splitlines()):
        assert line.startswith("- "), f"an entry must be one line: {line}"
        assert len(line) <= CHANGELOG_LINE, f"an entry must have at most {CHANGELOG_LINE} characters: {line}"


def commands(text: str) -> list[str]:
    """Command lines of a page: those in blocks of shell or indented, and in code of the prose."""
    blocks = [block for language, block in _FENCE.findall(text) if language in ("sh", "")]
    prose = _FENCE.sub("", text)
    lines = [line for block in blocks for line in block.splitlines()]
    lines += re.findall(r"^    (\S.*)$", prose, re.MULTILINE) + _CODE.findall(prose)
    return [re.sub(r"\s{2,}#.*|\s;.*", "", line).strip() for line in lines]


def options_of(command: click.Command) -> set[str]:
    return {option for each in command.params for option in (*each.opts, *each.secondary_opts)} | {"--help", "-h"}


@every(PRESENT)
def test_commands_in_pages_exist(page: Path) -> None:
    for line in commands(text_of(page)):
        words = line.split()
        if re.match(r"daedal [a-z]", line):
            check_daedal(words[1:], line)
        elif match := re.match(r"(?:\.venv/bin/)?python -m ([\w.]+)", line):
            assert find_spec(match[1]) is not None, f"{line}: there is no such module"
        elif match := re.match(r"(?:\w+=\S+ )?make ([a-z-]+)(?: |$)", line):
            assert re.search(rf"^{match[1]}:", text_of(ROOT / "Makefile"), re.MULTILINE), (
                f"{line}: make has no such target"
            )


def check_daedal(words: list[str], line: str) -> None:
    command = cli.get_command(click.Context(cli), words[0].rstrip(","))
    assert command is not None, f"{line}: there is no such command"
    for word in words[1:]:
        option = word.partition("=")[0].rstrip(",;:")
        if re.fullmatch(r"--?[a-zA-Z][\w-]*", option):
            assert option in options_of(command), f"{line}: it has no option {option}"


def test_options_of_make_are_known() -> None:
    """``ARGS`` of ``make bitstream`` are options of ``daedal bitstream``, and so on."""
    tools = {"sim": "sim", "bench": "bench", "bitstream": "bitstream"}
    for page in PRESENT:
        for target, arguments in re.findall(r"make (\w+)[^\n`]* ARGS=(\"[^\"]*\"|\S+)", text_of(page)):
            if target in tools:
                check_daedal([tools[target], *shlex.split(arguments.strip('"`'))], f"make {target} ARGS={arguments}")


@every(PRESENT)
def test_python_in_pages_is_python(page: Path) -> None:
    for language, block in _FENCE.findall(text_of(page)):
        if language == "python":
            ast.parse(block.replace("…", "..."))


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("measured on 26 November 2026", DATES),
        ("of 2026-11-26.", DATES),
        ("bags come in turn", NO_TERMS),
        ("it is no longer slow", NO_TERMS),
    ],
)
def test_what_is_not_wanted_is_found(text: str, check: re.Pattern[str]) -> None:
    assert check.search(text)


def test_wrong_commands_are_found() -> None:
    with pytest.raises(AssertionError, match="it has no option --cnfig"):
        check_daedal(["bench", "--cnfig", "x"], "daedal bench --cnfig x")
    with pytest.raises(AssertionError, match="there is no such command"):
        check_daedal(["benhc"], "daedal benhc")
    assert commands("```sh\nmake sim  # why\n```\nand `daedal sim`\n\n    daedal tune\n") == [
        "make sim",
        "daedal tune",
        "daedal sim",
    ]
