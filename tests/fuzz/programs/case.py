"""A program with what it runs on, and its text form, in which failing ones are kept.

::

    ; config edge
    ; image 12
    ; expect done
    ; argument 3 0x1234
    config
    length
    level 0 control enable=1
    raw 0xf000000000000000
    end

Words are written as by the assembler; those that it cannot write without loss are written ``raw``. ``config``,
``length`` and ``end`` stand for the words that belong there, so a kept program outlives a change of its configuration.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from daedal.errors import ProgramError
from daedal.hw.config.core import Config
from daedal.hw.isa.checksum import checksum
from daedal.hw.isa.program import WORD_BYTES, Program, Word
from daedal.hw.isa.tools.assembler import assemble, disassemble
from daedal.hw.isa.words import ControlField

HEADER = 2
"""Words before the body: CONFIG and LENGTH."""


def split(raw: bytes) -> tuple[int, ...]:
    """The 64-bit words in these bytes."""
    return tuple(int.from_bytes(raw[at : at + WORD_BYTES], "little") for at in range(0, len(raw), WORD_BYTES))


@dataclass(frozen=True)
class Case:
    """``words`` are all 64-bit words of the program; ``image`` is the seed of the memory.

    ``expect``: how it must end: ``done``, in a ``fault``, or, where queues that never fill find another fault than
    real ones, in a fault or a ``hang``.
    ``memory``: the memory model on which the RTL has failed, or "".
    """

    config: Config
    image: int
    words: tuple[int, ...]
    arguments: tuple[int, ...]
    expect: str = "done"
    memory: str = ""

    @staticmethod
    def of(config: Config, image: int, body: Iterable[Word], arguments: Sequence[int]) -> "Case":
        """A legal program of these words."""
        raw = Program(config.hash, body).to_bytes()
        return Case(config, image, split(raw), tuple(arguments))

    @property
    def legal(self) -> bool:
        return self.expect == "done"

    @property
    def raw(self) -> bytes:
        return b"".join(word.to_bytes(WORD_BYTES, "little") for word in self.words)

    @property
    def body(self) -> tuple[int, ...]:
        return self.words[HEADER:-1]

    def with_body(self, body: Sequence[int]) -> "Case":
        """Another body between a header and an end that are wrong only where they were."""
        good, here = self._frame(self.body), self._frame(body)
        frame = zip((*self.words[:HEADER], self.words[-1]), good, here, strict=True)
        config, length, end = (new if old == right else old for old, right, new in frame)
        return replace(self, words=(config, length, *body, end))

    def _frame(self, body: Sequence[int]) -> tuple[int, int, int]:
        """CONFIG, LENGTH and END around this body."""
        config = Word(ControlField.CONFIG, value=self.config.hash).encode()
        length = Word(ControlField.LENGTH, value=len(body) + HEADER + 1).encode()
        raw = b"".join(word.to_bytes(WORD_BYTES, "little") for word in (config, length, *body))
        return config, length, _end(raw)

    def text(self, note: str = "") -> str:
        """This case as it is kept."""
        lines = [f"; {line}" for line in note.splitlines()]
        lines += [f"; config {self.config.name}", f"; image {self.image}"]
        lines += [f"; expect {self.expect}"]
        lines += [f"; memory {self.memory}"] if self.memory else []
        used = [(k, value) for k, value in enumerate(self.arguments) if value]
        lines += [f"; argument {k} {value:#x}" for k, value in used]
        frame = self._frame(self.body)
        shown = ((self.words[0], frame[0], "config"), (self.words[1], frame[1], "length"))
        lines += [name if word == right else f"raw {word:#x}" for word, right, name in shown]
        lines += [_show(word) for word in self.body]
        lines.append("end" if self.words[-1] == frame[2] else f"raw {self.words[-1]:#x}")
        return "\n".join(lines) + "\n"

    @staticmethod
    def parse(text: str, configs: dict[str, Config]) -> "Case":
        """The case in this text; ValueError or ProgramError if it has none."""
        config, image, expect, memory, arguments = configs["ddr3"], 0, "done", "", {}
        listed: list[str] = []
        for line in text.splitlines():
            match line.split():
                case [";", "config", name]:
                    config = _known(configs, name)
                case [";", "image", number]:
                    image = _number(number)
                case [";", "expect", kind]:
                    expect = kind
                case [";", "memory", spec]:
                    memory = spec
                case [";", "argument", number, value]:
                    arguments[_number(number)] = _number(value)
                case [";", *_] | []:
                    pass
                case _:
                    listed.append(line.strip())
        given = tuple(arguments.get(k, 0) for k in range(config.arguments))
        if len(listed) < HEADER + 1:
            raise ValueError(f"a program must have at least {HEADER + 1} words, not {len(listed)}")
        body = tuple(_read(line) for line in listed[HEADER:-1])
        case = Case(config, image, (0, 0, *body, 0), given, expect, memory)
        frame = case._frame(body)
        head = [frame[k] if listed[k] in ("config", "length") else _read(listed[k]) for k in range(HEADER)]
        end = frame[2] if listed[-1] == "end" else _read(listed[-1])
        return replace(case, words=(*head, *body, end))


def _end(raw: bytes) -> int:
    empty = Word(ControlField.END).encode()
    return empty | checksum((*split(raw), empty))


def _read(line: str) -> int:
    if line.startswith("raw "):
        return _number(line.removeprefix("raw "))
    words = split(assemble(f"config 0\n{line}\n"))
    if len(words) != HEADER + 2:
        raise ValueError(f"a line must be one word, not {line[:80]!r}")
    return words[HEADER]


def _number(text: str) -> int:
    """A number of 64 bits at most; ValueError if it is none."""
    value = int(text, 0) if len(text) < 80 else -1
    if not 0 <= value < 1 << 64:
        raise ValueError(f"a number must be from 0 to {(1 << 64) - 1}, not {text[:80]!r}")
    return value


def _known(configs: dict[str, Config], name: str) -> Config:
    if name not in configs:
        raise ValueError(f"a configuration must be one of {', '.join(configs)}, not {name[:80]!r}")
    return configs[name]


def _show(word: int) -> str:
    try:
        line = disassemble(Program(0, [Word.decode(word, 0)]).to_bytes()).splitlines()[1]
        if _read(line) == word:
            return line
    except (ProgramError, ValueError, KeyError):
        pass
    return f"raw {word:#x}"
