"""Runs a case on a device and compares with PyTorch, bit for bit."""

import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from daedal.bench.workloads.case import Case

if TYPE_CHECKING:
    from daedal.driver.device import Device


@dataclass(frozen=True)
class Result:
    """What a run gave. ``difference`` names the first element that is not PyTorch's, or is empty.

    Cycles run from doorbell to the last acknowledged write, summed over launches; ``line_share`` is lines
    read and written per cycle; ``stalls`` are cycles by cause.
    """

    workload: str
    operation: str
    shape: str
    target: str
    config: str
    memory: str
    bit_exact: bool
    difference: str
    cycles: int
    launches: int
    lookups: int
    rows: int
    bytes_read: int
    bytes_written: int
    line_share: float
    main_stall: str
    stalls: dict[str, int]
    seconds: float
    sim_kcycles_per_s: float

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, for JSON."""
        return asdict(self)


def run_case(case: Case, device: "Device", *, target: str, memory: str) -> Result:
    """Compile, run and compare one case; ``target`` and ``memory`` are for the result only."""
    import torch

    from daedal.compiler.api import compile

    executable = compile(case.module, case.inputs, device=device)
    simulated = getattr(device.target, "cycles", 0)
    start = time.perf_counter()
    outputs = executable(*case.inputs)
    seconds = time.perf_counter() - start
    simulated = getattr(device.target, "cycles", 0) - simulated
    with torch.no_grad():
        expected = case.module(*case.inputs)
    difference, stats = first_difference(outputs, expected), executable.stats
    return Result(
        case.workload, case.operation, case.shape, target, device.config.name, memory,
        bit_exact=not difference, difference=difference, cycles=stats.cycles, launches=stats.launches,
        lookups=stats.lookups, rows=stats.rows, bytes_read=stats.bytes_read,
        bytes_written=stats.bytes_written,
        line_share=round(stats.line_share, 4), main_stall=stats.main_stall, stalls=stats.stalls,
        seconds=round(seconds, 3), sim_kcycles_per_s=round(simulated / seconds / 1000, 1),
    )  # fmt: skip


def same_bits(ours: Any, theirs: Any) -> bool:
    """Whether two binary32 tensors agree in shape, type and every bit, but for sign and payload of NaNs."""
    return not _first_element(ours, theirs)


def first_difference(outputs: Any, expected: Any) -> str:
    """Where tensors (or tuples of them) of elements of up to 8 bytes first differ in a bit, or an empty text.

    A NaN equals any NaN: which one an operation gives is not defined.
    """
    if isinstance(expected, tuple | list):
        if not isinstance(outputs, tuple | list) or len(outputs) != len(expected):
            return f"there must be {len(expected)} outputs"
        texts = (first_difference(*pair) for pair in zip(outputs, expected, strict=True))
        return next((f"output {k}: {text}" for k, text in enumerate(texts) if text), "")
    return _first_element(outputs, expected)


def _first_element(output: Any, expected: Any) -> str:
    import torch

    if output.shape != expected.shape or output.dtype != expected.dtype:
        found = f"{tuple(output.shape)} of {output.dtype}"
        return f"shape must be {tuple(expected.shape)} of {expected.dtype}, not {found}"
    output, expected = output.detach().contiguous(), expected.detach().contiguous()
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[expected.element_size()]
    unequal = output.view(bits) != expected.view(bits)
    wrong = (unequal & ~(output.isnan() & expected.isnan())).nonzero()
    if not len(wrong):
        return ""
    where = tuple(wrong[0].tolist())
    given, wanted = float(output[where].item()), float(expected[where].item())
    return f"element {list(where)} must be {wanted.hex()} ({wanted:g}), not {given.hex()} ({given:g})"
