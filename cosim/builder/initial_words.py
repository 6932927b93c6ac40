"""Verilog in which loops set the first contents of memories, instead of a statement for each word.

Yosys writes ``freed[0] = 6'h00; freed[1] = 6'h00; …``, which Verilator keeps. In a core this was a third of all the C++
that a model consisted of, for code that runs once.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

_WORD = re.compile(r"^ *(?P<memory>\\?[\w.$]+ ?)\[(?P<index>\d+)\] = (?P<value>\d+'h[0-9a-f]+);\n", re.MULTILINE)

FEWEST = 4
"""Words in a row that become a loop."""


@lru_cache(maxsize=2)
def loops_over_words(verilog: str) -> str:
    """``verilog`` with a loop for each run of words that follow each other and are given the same value.

    The last results are kept: finding the words takes two thirds of the time in which a device is opened again.
    """
    parts, end = [], 0
    for run in _runs(verilog):
        first, last = run[0], run[-1]
        if len(run) < FEWEST:
            continue
        loop = f"for (integer word = {first['index']}; word < {int(last['index']) + 1}; word = word + 1)"
        parts += [verilog[end : first.start()], f"    {loop} {first['memory']}[word] = {first['value']};\n"]
        end = last.end()
    return "".join([*parts, verilog[end:]])


def _runs(verilog: str) -> Iterator[list[re.Match[str]]]:
    """The statements that set a word, those together that one loop can do."""
    run: list[re.Match[str]] = []
    for word in _WORD.finditer(verilog):
        if run and not _follows(run[-1], word):
            yield run
            run = []
        run.append(word)
    if run:
        yield run


def _follows(one: re.Match[str], other: re.Match[str]) -> bool:
    together = other.start() == one.end() and int(other["index"]) == int(one["index"]) + 1
    return together and (other["memory"], other["value"]) == (one["memory"], one["value"])
