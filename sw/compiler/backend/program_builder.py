"""A function in ``dlc`` as a program in ``mach``, and such a program as bytes."""

from dataclasses import dataclass

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from daedal.compiler.backend.access_operations import NestCode
from daedal.compiler.backend.access_words import nest_words
from daedal.compiler.backend.arguments import ArgumentTable
from daedal.compiler.backend.execute_operations import ExecuteCode
from daedal.compiler.backend.execute_words import execute_words
from daedal.compiler.backend.interleave_bags import Turns
from daedal.compiler.dialects import dlc, mach, slc
from daedal.compiler.dialects.mach_access import NestOp
from daedal.errors import UnsupportedOperation
from daedal.hw.config.core import Config
from daedal.hw.isa.program import Program, Word
from daedal.hw.isa.words import ControlField
from daedal.runtime.launch_arguments import Expression


@dataclass(frozen=True)
class Generated:
    """A program.

    Attributes
    ----------
    module
        It, in ``mach``; its streams have no registers yet.
    arguments
        Its launch arguments, in order.
    choices
        In words, how loops run otherwise than they are written.
    """

    module: ModuleOp
    arguments: tuple[Expression, ...]
    choices: tuple[str, ...]


def generate(
    module: ModuleOp, config: Config, *, overlaps: bool = True, joins: bool = False, stages: bool = False,
    turns: Turns = Turns.LONG,
) -> Generated:  # fmt: skip
    """The program for the module's only function.

    ``turns``: how activations of a nest may run side by side; ``overlaps``: iterations with sums along rows may, and
    with ``joins`` the last ones of a loop's run and the first of its next, and with ``stages`` what rows end with, for
    which the module is changed.

    Raises UnsupportedOperation, naming the loop and the resource, if the program does not fit the
    configuration.
    """
    if turns is Turns.SHORT and not config.dealt_bundles:
        turns = Turns.NONE
    function = only_function(module)
    arguments = ArgumentTable(config)
    operations: list[Operation] = []
    choices: list[str] = []
    tokens: dict[int, int] = {}
    nests = _nests(function)
    overlapped: list[slc.ForOp] = []
    starters: dict[int, int] = {}
    events: dict[int, dlc.EventOp] = {}
    for number, nest in enumerate(nests):
        for op in [op for op in nest.walk() if isinstance(op, dlc.PushTokenOp)]:
            starters[op.token.value.data], events[op.token.value.data] = number, _event_around(op)
    for op in function.body.block.ops:
        if isinstance(op, dlc.ExecuteOp):
            callbacks = ExecuteCode(op, config, starters, events, overlaps, joins, stages, tokens)
            operations += callbacks.run()
            choices += callbacks.choices
            overlapped += callbacks.overlapped
    for nest in _nests(function):
        # Short rows from several bags in turn would each wait for the tree of its sum.
        in_turn = Turns.NONE if nest in overlapped or (stages and overlapped) else turns
        code = NestCode(nest, config, arguments, tokens, in_turn)
        operations.append(code.run())
        choices += code.choices
    names = [str(expression) for expression in arguments.expressions]
    made = ModuleOp([mach.ProgramOp(config.hash, names, operations)])
    return Generated(made, tuple(arguments.expressions), tuple(dict.fromkeys(choices)))


def program_bytes(module: ModuleOp) -> bytes:
    """The bytes of the only program in a module of ``mach``; UnsupportedOperation if a register has no number."""
    (program,) = (op for op in module.body.block.ops if isinstance(op, mach.ProgramOp))
    operations = list(program.body.block.ops)
    words = execute_words(operations)
    for nest in operations:
        if isinstance(nest, NestOp):
            words += [*nest_words(nest), Word(ControlField.RUN)]
    return Program(program.config.value.data, words).to_bytes()


def _nests(function: func.FuncOp) -> list[slc.ForOp]:
    """The outermost loops of the access program."""
    accesses = [op for op in function.body.block.ops if isinstance(op, dlc.AccessOp)]
    return [nest for op in accesses for nest in op.body.block.ops if isinstance(nest, slc.ForOp)]


def _event_around(op: Operation) -> dlc.EventOp:
    event = op.parent_op()
    assert isinstance(event, dlc.EventOp)
    return event


def only_function(module: ModuleOp) -> func.FuncOp:
    """The function of a module with one; UnsupportedOperation if there are none or several."""
    functions = [op for op in module.body.block.ops if isinstance(op, func.FuncOp) and not op.is_declaration]
    if len(functions) != 1:
        raise UnsupportedOperation(f"a module must have one function, not {len(functions)}")
    return functions[0]
