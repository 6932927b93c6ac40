"""How messages show what a user gave: in one line, and short, whatever it is."""

from reprlib import Repr

LONGEST = 1500
"""Characters of a message; of a longer one the middle is left out, for the way out comes last."""


class _Short(Repr):
    """Values as Python writes them, cut where they are long or deep."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = 100
        self.maxlevel = 3

    def repr_instance(self, x: object, level: int) -> str:
        """Any other value; arrays and tensors have lines of their own."""
        return " ".join(super().repr_instance(x, level).split())

    def repr_int(self, x: int, level: int) -> str:
        """An integer; one of very many digits in base 16, since Python refuses to write it in base 10."""
        text = str(x) if x.bit_length() < 128 else f"{x:#x}"
        return text if len(text) <= self.maxlong else f"{text[: self.maxlong]}…"


def shown(value: object) -> str:
    """A value that a user gave, for a message: short, whatever it is."""
    return _Short().repr(value)


def one_line_of(message: str) -> str:
    """``message`` in one line that a terminal takes as text: no control characters, at most ``LONGEST`` characters."""
    if len(message) > LONGEST:
        message = f"{message[: LONGEST // 2]} … {message[-LONGEST // 2 :]}"
    words = " ".join(message.split())
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in words)
