"""A model on the host, with places for launches: what an executable asks of a front end, and what it offers to it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from daedal.errors import UnsupportedOperation
from daedal.runtime.batch.fast_path import FastPath
from daedal.runtime.batch.members import Call, Join, Member
from daedal.runtime.batch.same_sizes import SameSizes
from daedal.runtime.request import Request
from daedal.runtime.saved.contents import SavedModel
from daedal.runtime.saved.files import Writer
from daedal.runtime.single_path import SinglePath

if TYPE_CHECKING:
    from torch import Tensor, fx


class Work(NamedTuple):
    """Who does what a program on the host hands over: single operations, and groups of them, whose results it gives by
    node. What they give may be filled only later: ``settle`` waits for that. ``refuse`` says what becomes of an
    operation that the machine cannot do. ``prepare`` makes a group ready to be run ``again`` with little ado, if that
    is possible; that is also told whether the kinds of its sources are known to be as before. ``prepare_one`` and
    ``once_more`` do the same for a single operation. ``attempt`` does one run
    of a trace of the model, and ``leave_all`` says that the framework does all. ``rehearses``: nothing is done in
    earnest, and what the framework changes is changed back.
    """

    call: "Callable[[Call, Request], Tensor]"
    group: "Callable[[Sequence[Member], Sequence[Join]], Mapping[fx.Node, Tensor]]"
    settle: Callable[[], None]
    refuse: "Callable[[Call, Sequence[Any], UnsupportedOperation], Tensor]"
    prepare: Callable[[Sequence[Member], Sequence[Join]], FastPath | SameSizes | None] = lambda members, joins: None
    again: "Callable[[FastPath | SameSizes, Sequence[Any], bool], Mapping[fx.Node, Tensor] | None]" = lambda *given: (
        None
    )
    attempt: Callable[[Callable[[], Any]], Any] = lambda run: run()
    leave_all: Callable[[Iterable[Call], str], None] = lambda calls, reason: None
    rehearses: bool = False
    prepare_one: "Callable[[Call, Request, Sequence[Any]], SinglePath | None]" = lambda *given: None
    once_more: "Callable[[SinglePath, Sequence[Any]], Tensor | None]" = lambda *given: None


class HostProgram(Protocol):
    """A model as its framework runs it, with calls of whoever does the operations of a device."""

    @property
    def framework(self) -> str:
        """What the framework is called."""
        ...

    @property
    def calls(self) -> Iterable[Call]:
        """The operations that are handed over."""
        ...

    @property
    def fewest_launches(self) -> int:
        """The most operations of which each needs the one before."""
        ...

    @property
    def reasons(self) -> Mapping[str, str]:
        """Operations that are not, and why."""
        ...

    @property
    def remarks(self) -> Mapping[str, str]:
        """What is to be said of operations that are."""
        ...

    @property
    def eager(self) -> Mapping[str, str]:
        """Where the framework runs operations one by one, although it was to compile them, and why."""
        ...

    @property
    def code(self) -> str:
        """The code that runs."""
        ...

    def by_position(self, inputs: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Any]:
        """All inputs by position, of those by position and those by name."""
        ...

    def run(self, inputs: Sequence[Any], work: Work) -> Any:
        """The result for these inputs."""
        ...

    def can_leave(self, call: Call, error: UnsupportedOperation) -> bool:
        """Whether the framework does an operation that the machine cannot do; if not, the error is raised."""
        ...

    def saved(self, writer: Writer) -> SavedModel:
        """What a file says of it, with its constants in ``writer``, and without programs; UnsupportedOperation if a
        file cannot hold it.
        """
        ...

    def tables(self) -> Mapping[str, Any]:
        """The tensors of the model that a file of it is to be given, by name."""
        ...

    def request_of(self, call: Call, sources: Sequence[Any]) -> Request:
        """The request for an operation with these values of its sources; raises what is wrong with them."""
        ...
