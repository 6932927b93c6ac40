"""The core on boards that people own: one file per board, and what they share."""

from importlib import import_module

from daedal.base.messages import shown
from daedal.errors import ToolchainNotFound, UnknownBoard
from daedal.fpga.boards.board import Board

BOARDS = ("ecpix5", "ulx3s", "tangnano20k", "icebreaker")
"""All boards; each is a module of this package with a ``BOARD`` in it."""


def find_board(name: str) -> Board:
    """The board called ``name``; UnknownBoard says which there are, ToolchainNotFound what must be installed."""
    if name not in BOARDS:
        raise UnknownBoard(f"board must be one of {', '.join(BOARDS)}, not {shown(name)}")
    try:
        board = import_module(f"{__name__}.{name}").BOARD
    except ModuleNotFoundError as error:
        raise ToolchainNotFound(
            f"{error.name} must be installed for the board {name}: pip install daedal[boards]"
        ) from error
    assert isinstance(board, Board)
    return board
