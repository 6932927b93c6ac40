"""cocotb bench: a memory shows what it was given."""

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge, Timer

from tests.unit.harness import parameters


@cocotb.test()
async def shows_its_contents(dut):
    dut.write.value = 0
    dut.rst.value = 0
    cocotb.start_soon(Clock(dut.clk, 2, "ns").start())
    await RisingEdge(dut.clk)
    for address, word in enumerate(parameters()["contents"]):
        dut.address.value = address
        await Timer(1, "ns")
        assert dut.data.value.to_unsigned() == word, f"word {address}"
