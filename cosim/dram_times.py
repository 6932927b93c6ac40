"""DRAMs of which the timing is known, but which have no RTL here: for the target ``model`` alone."""

from dataclasses import dataclass


@dataclass(frozen=True)
class DramTimes:
    """A channel of a DRAM. Times are in cycles of ``clock``, in which one line moves.

    Attributes
    ----------
    name
        What ``memory=`` calls it.
    source
        Where its times come from.
    line_bytes, page_bytes, banks
        Bytes of a burst, which is a line of the core, and of a page of a bank; banks of the channel.
    channels
        Channels of one part (a stack, a module, a package), each like this one.
    clock
        Hz; the core is taken to run at this clock.
    precharge, activate, active, row_cycle, activate_gap
        tRP, tRCD, tRAS, tRC; cycles from one ACTIVATE to the next, of tRRD and tFAW the longer.
    refresh_interval, refresh
        tREFI and tRFC.
    latency
        From a read's command to its line.
    """

    name: str
    source: str
    line_bytes: int
    page_bytes: int
    banks: int
    channels: int
    clock: int
    precharge: int
    activate: int
    active: int
    row_cycle: int
    activate_gap: int
    refresh_interval: int
    refresh: int
    latency: int

    def text(self) -> str:
        """What shapes its time, in words."""
        pages = f"{self.banks} banks of {self.page_bytes}-byte pages"
        return f"{self.name}: {pages}, {self.clock / 1e6:g} MHz; times of {self.source}"


_DRAMSIM3 = "DRAMsim3 (github.com/umd-memsys/DRAMsim3)"
_RAMULATOR = "Ramulator (github.com/CMU-SAFARI/ramulator)"
_RAMULATOR2 = "Ramulator 2 (github.com/CMU-SAFARI/ramulator2)"

DRAMS = {
    dram.name: dram
    for dram in (
        # A line in 4 of its tCK of 0.625 ns.
        DramTimes(
            "ddr4-3200-x64", f"{_DRAMSIM3}, configs/DDR4_8Gb_x8_3200.ini", line_bytes=64, page_bytes=8192, banks=16,
            channels=1, clock=400_000_000, precharge=6, activate=6, active=13, row_cycle=19, activate_gap=2,
            refresh_interval=3120, refresh=140, latency=7,
        ),
        # A line in 8 tCK of 0.625 ns on one of a module's two channels of 32 bits; tRFC of 16 Gbit.
        DramTimes(
            "ddr5-3200-x32", f"{_RAMULATOR2}, src/dram/impl/DDR5.cpp, DDR5_3200AN", line_bytes=64, page_bytes=4096,
            banks=32, channels=2, clock=200_000_000, precharge=3, activate=3, active=7, row_cycle=10, activate_gap=1,
            refresh_interval=780, refresh=59, latency=4,
        ),
        # A line of 32 bytes is a burst of 16 on 16 bits, 8 tCK of 0.625 ns; LPDDR4X differs from it in voltages alone.
        DramTimes(
            "lpddr4x", f"{_RAMULATOR}, src/LPDDR4.h and LPDDR4.cpp, LPDDR4_3200, 8 Gbit", line_bytes=32,
            page_bytes=2048, banks=8, channels=2, clock=200_000_000, precharge=4, activate=4, active=9, row_cycle=12,
            activate_gap=2, refresh_interval=781, refresh=36, latency=6,
        ),
        # One pseudo-channel of 64 bits at 3.2 Gbit/s a pin: a line of 32 bytes in 1.25 ns; latencies are HBM2's, in ns.
        DramTimes(
            "hbm2e", f"{_DRAMSIM3}, configs/HBM2_8Gb_x128.ini: its times in ns, at 3.2 Gbit/s a pin", line_bytes=32,
            page_bytes=1024, banks=16, channels=16, clock=800_000_000, precharge=12, activate=12, active=28,
            row_cycle=39, activate_gap=6, refresh_interval=3120, refresh=208, latency=13,
        ),
    )
}  # fmt: skip
"""Name -> DRAM."""
