"""The ports of a core, or of a system of several, as they are called in Verilog, with what they mean."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from amaranth import Shape
from amaranth.lib import wiring

from daedal.hw.config.core import Config
from daedal.hw.memory.axi import Described
from daedal.hw.system import SystemPorts, tile_ports
from daedal.hw.tile import TilePorts


@dataclass(frozen=True)
class Port:
    """One port: ``direction`` is ``input`` or ``output``, seen from the module; ``width`` is in bits.

    ``group`` is the interface that it belongs to (or ``clock and reset``, or its own name), ``group_meaning`` what that
    is for.
    """

    name: str
    direction: str
    width: int
    meaning: str
    group: str
    group_meaning: str


def core_ports(config: Config) -> list[Port]:
    """All ports of the core, in the order of ``TilePorts``."""
    return _ports(TilePorts(config))


def top_ports(config: Config, tiles: int | None, axi: str) -> list[Port]:
    """All ports of the top module of ``daedal verilog``; ValueError for what there is not."""
    return _ports(tile_ports(config, axi) if tiles is None else SystemPorts(config, tiles, axi))


def _ports(signature: Described) -> list[Port]:
    clock = ("clock and reset", "one clock for everything")
    ports = [
        Port("clk", "input", 1, "clock, rising edge", *clock),
        Port("rst", "input", 1, "reset, high, synchronous; takes effect in two cycles at most", *clock),
    ]
    for name, member in signature.members.items():
        meaning = signature.meanings[name]
        if member.is_port:
            ports.append(_port(name, member, meaning, name, ""))
        else:
            ports += _interface(name, member.signature, meaning)
    return ports


def _interface(name: str, signature: Described, meaning: str) -> Iterator[Port]:
    for inner, member in signature.members.items():
        yield _port(f"{name}__{inner}", member, signature.meanings[inner], name, meaning)


def _port(name: str, member: wiring.Member, meaning: str, group: str, group_meaning: str) -> Port:
    direction = "output" if member.flow == wiring.Out else "input"
    return Port(name, direction, Shape.cast(member.shape).width, meaning, group, group_meaning)


def ports_comment(ports: Sequence[Port]) -> str:
    """A Verilog comment that lists every port: direction, width, name, meaning."""
    longest = max(len(port.name) for port in ports)
    lines = ["// Ports (direction, bits, name, meaning)"]
    group = ""
    for port in ports:
        if port.group != group:
            group = port.group
            lines += ["//", f"// {group}{': ' + port.group_meaning if port.group_meaning else ''}"]
        lines.append(f"//   {port.direction:6} {port.width:4}  {port.name:{max(18, longest)}} {port.meaning}")
    return "\n".join(lines) + "\n"
