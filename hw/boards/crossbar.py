"""What joins the ports of a system with LiteDRAM's banks: as LiteDRAM's own crossbar in each cycle, on a faster clock.

A port that has commands in a bank keeps out of all others, so that its data come in order. In LiteDRAM's crossbar this
is found out in the cycle in which another bank chooses a port: from that bank's lock and the number of the port that it
serves, for all banks and ports. Here registers say so: ``holds`` for each bank and port, ``busy`` for each port.
"""

from functools import partial, reduce
from operator import or_
from typing import Any

from migen import Array, Cat, Signal
from migen.genlib.roundrobin import SP_CE, RoundRobin


def hold_in_registers(crossbar: Any, locks: list[Any]) -> None:
    """Change ``crossbar``, a LiteDRAMCrossbar that is not finalized yet; address bits are row, bank, column.

    ``locks``: for each bank, whether it has commands in the next cycle (``bank_machines.decide_from_registers``).
    """
    crossbar.do_finalize = partial(_join, crossbar, locks)


def _join(crossbar: Any, locks: list[Any]) -> None:
    """Choose a port for each bank, and pass on its commands and their data."""
    controller, ports = crossbar.controller, crossbar.masters
    banks = [getattr(controller, f"bank{number}") for number in range(crossbar.nbanks)]
    columns = controller.settings.geom.colbits - controller.address_align
    bank_of = [port.get_bank_address(crossbar.bank_bits, columns) for port in ports]
    place_of = [port.get_row_column_address(crossbar.bank_bits, crossbar.rca_bits, columns) for port in ports]
    choices = [RoundRobin(len(ports), SP_CE) for _ in banks]
    crossbar.submodules += choices
    serves = [[choice.grant == number for number in range(len(ports))] for choice in choices]
    # While a bank has commands, it serves the same port.
    keeps = [[lock & serving for serving in serves[number]] for number, lock in enumerate(locks)]
    holds = [[_late(crossbar, keep, 1) for keep in bank] for bank in keeps]
    # A port has commands in one bank at most: if it has any, no other bank but that one may take more. Registers know
    # that for two banks each.
    several = [keeps[first : first + 2] for first in range(0, len(banks), 2)]
    busy = [reduce(or_, [_late(crossbar, reduce(or_, [bank[port] for bank in two]), 1) for two in several])
            for port in range(len(ports))]  # fmt: skip
    takes: list[list[Any]] = [[] for _ in ports]
    for number, (bank, choice) in enumerate(zip(banks, choices, strict=True)):
        asked = []
        for port, (at, wanted) in enumerate(zip(ports, bank_of, strict=True)):
            may = (wanted == number) & (~busy[port] | holds[number][port])
            asked.append(may & at.cmd.valid)
            takes[port].append(serves[number][port] & may & bank.ready)
        crossbar.comb += [
            choice.request.eq(Cat(*asked)),
            choice.ce.eq(~bank.valid & ~bank.lock),
            bank.valid.eq(reduce(or_, (ask & serving for ask, serving in zip(asked, serves[number], strict=True)))),
            bank.addr.eq(Array(place_of)[choice.grant]),
            bank.we.eq(Array(port.cmd.we for port in ports)[choice.grant]),
        ]
    crossbar.comb += [port.cmd.ready.eq(reduce(or_, taken)) for port, taken in zip(ports, takes, strict=True)]
    _pass_data(crossbar, banks, serves)


def _pass_data(crossbar: Any, banks: list[Any], serves: list[list[Any]]) -> None:
    """Take the data to and from the port that a bank serves, as late as LiteDRAM has them."""
    controller = crossbar.controller
    words, masks = [], []
    for number, port in enumerate(crossbar.masters):
        writes = reduce(or_, (serves[n][number] & bank.wdata_ready for n, bank in enumerate(banks)))
        reads = reduce(or_, (serves[n][number] & bank.rdata_valid for n, bank in enumerate(banks)))
        soon = _late(crossbar, writes, crossbar.write_latency - 1)
        crossbar.comb += [
            port.wdata.ready.eq(_late(crossbar, soon, 1)),
            port.rdata.valid.eq(_late(crossbar, reads, crossbar.read_latency)),
            port.rdata.data.eq(controller.rdata),
        ]
        words.append(port.wdata.data & _spread(crossbar, soon, len(port.wdata.data)))
        masks.append(port.wdata.we & _spread(crossbar, soon, len(port.wdata.we)))
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
