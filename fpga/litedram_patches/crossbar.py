"""What joins the ports of a system with LiteDRAM's banks: as LiteDRAM's own crossbar in each cycle, on a faster clock.

A port that has commands in a bank keeps out of all others, so that its data come in order. In LiteDRAM's crossbar this
is found out in the cycle in which another bank chooses a port: from that bank's lock and the number of the port that it
serves, for all banks and ports. Here registers say so: ``holds`` for each bank and port, ``busy`` for each port.

And a bank looks only at the ports that can have commands for it: the core's fabric gives each of its read ports banks
of its own, which LiteDRAM cannot know. A port that only reads has no part in the data that are written.

Without it, on an LFE5U of grade 6: from whom a bank serves to another bank's queue 14.1 ns (routed); and nextpnr's
router has 8 % longer wires to find. Upstream: ``LiteDRAMCrossbar.do_finalize`` of ``litedram/core/crossbar.py``,
enjoy-digital/litedram, with the banks of a port as an argument of ``get_port``; builds on ``bank_machines``.
"""

from collections.abc import Collection, Mapping
from functools import partial, reduce
from operator import or_
from typing import Any

from migen import Array, Cat, Signal
from migen.genlib.roundrobin import SP_CE, RoundRobin


def hold_in_registers(crossbar: Any, locks: list[Any], own: Mapping[int, Collection[int]] | None = None) -> None:
    """Change ``crossbar``, a LiteDRAMCrossbar that is not finalized yet; address bits are row, bank, column.

    ``locks``: for each bank, whether it has commands in the next cycle (``bank_machines.decide_from_registers``).
    ``own``: port -> the only banks for which it has commands; others may have commands for all. It is read when the
    crossbar is finalized.
    """
    crossbar.do_finalize = partial(_join, crossbar, locks, own or {})


def _join(crossbar: Any, locks: list[Any], own: Mapping[int, Collection[int]]) -> None:
    """Choose a port for each bank, and pass on its commands and their data."""
    banks = [getattr(crossbar.controller, f"bank{number}") for number in range(crossbar.nbanks)]
    comes = [[port for port in range(len(crossbar.masters)) if number in own.get(port, (number,))]
             for number in range(len(banks))]  # fmt: skip
    choices = [RoundRobin(len(ports), SP_CE) for ports in comes]
    crossbar.submodules += choices
    serves = [{port: choice.grant == n for n, port in enumerate(ports)}
              for choice, ports in zip(choices, comes, strict=True)]  # fmt: skip
    # While a bank has commands, it serves the same port.
    keeps = [{port: lock & serving for port, serving in here.items()}
             for here, lock in zip(serves, locks, strict=True)]  # fmt: skip
    _pass_commands(crossbar, list(zip(banks, choices, serves, keeps, strict=True)))
    _pass_data(crossbar, banks, serves)


def _pass_commands(crossbar: Any, joins: list[tuple[Any, Any, dict[int, Any], dict[int, Any]]]) -> None:
    """From the port that a bank serves. ``joins``: each bank, its choice, by port whether it serves and keeps that."""
    controller, ports = crossbar.controller, crossbar.masters
    columns = controller.settings.geom.colbits - controller.address_align
    bank_of = [port.get_bank_address(crossbar.bank_bits, columns) for port in ports]
    place_of = [port.get_row_column_address(crossbar.bank_bits, crossbar.rca_bits, columns) for port in ports]
    # A port has commands in one bank at most: if it has any, no other bank but that one may take more. Registers know
    # that for two banks each.
    busy = []
    for port in range(len(ports)):
        where = [keeps[port] for *_, keeps in joins if port in keeps]
        several = [where[first : first + 2] for first in range(0, len(where), 2)]
        busy.append(reduce(or_, [_late(crossbar, reduce(or_, two), 1) for two in several]))
    takes: list[list[Any]] = [[] for _ in ports]
    for number, (bank, choice, serves, keeps) in enumerate(joins):
        asked = {}
        for port, keep in keeps.items():
            may = (bank_of[port] == number) & (~busy[port] | _late(crossbar, keep, 1))
            asked[port] = may & ports[port].cmd.valid
            takes[port].append(serves[port] & may & bank.ready)
        crossbar.comb += [
            choice.request.eq(Cat(*asked.values())),
            choice.ce.eq(~bank.valid & ~bank.lock),
            bank.valid.eq(reduce(or_, (ask & serves[port] for port, ask in asked.items()))),
            bank.addr.eq(Array(place_of[port] for port in asked)[choice.grant]),
            bank.we.eq(Array(ports[port].cmd.we for port in asked)[choice.grant]),
        ]
    crossbar.comb += [port.cmd.ready.eq(reduce(or_, taken)) for port, taken in zip(ports, takes, strict=True)]


def _pass_data(crossbar: Any, banks: list[Any], serves: list[dict[int, Any]]) -> None:
    """Take the data to and from the port that a bank serves, as late as LiteDRAM has them.

    Where there is time for it, a register for each bank and port says first whether the bank took a command of that
    port: what a bank takes comes late in a cycle.
    """
    controller = crossbar.controller
    first = min(1, crossbar.write_latency - 1)
    words, masks = [], []
    for number, port in enumerate(crossbar.masters):
        mine = [(bank, here[number]) for bank, here in zip(banks, serves, strict=True) if number in here]
        if port.mode != "write":
            reads = reduce(or_, [_late(crossbar, serving & bank.rdata_valid, 1) for bank, serving in mine])
            crossbar.comb += [
                port.rdata.valid.eq(_late(crossbar, reads, crossbar.read_latency - 1)),
                port.rdata.data.eq(controller.rdata),
            ]
        if port.mode != "read":
            writes = reduce(or_, [_late(crossbar, serving & bank.wdata_ready, first) for bank, serving in mine])
            soon = _late(crossbar, writes, crossbar.write_latency - 1 - first)
            crossbar.comb += port.wdata.ready.eq(_late(crossbar, soon, 1))
            words.append(port.wdata.data & _spread(crossbar, soon, len(port.wdata.data)))
            masks.append(port.wdata.we & _spread(crossbar, soon, len(port.wdata.we)))
    if words:
        crossbar.comb += [controller.wdata.eq(reduce(or_, words)), controller.wdata_we.eq(reduce(or_, masks))]


def _spread(crossbar: Any, bit: Any, width: int) -> Any:
    """``bit`` a cycle later, ``width`` times, from registers for the data only, which can be near the memory's pins.

    Synthesis makes one register of those that are alike: so these begin with 1, or hold the opposite.
    """
    same, opposite, third = Signal(reset=1), Signal(), Signal(reset=1)
    crossbar.sync += [same.eq(bit), opposite.eq(~bit), third.eq(~bit)]
    parts = [same, ~opposite, ~third]
    return Cat(*(parts[n * len(parts) // width] for n in range(width)))


def _late(crossbar: Any, bit: Any, cycles: int) -> Any:
    """``bit``, so many cycles later."""
    for _ in range(cycles):
        later = Signal()
        crossbar.sync += later.eq(bit)
        bit = later
    return bit
