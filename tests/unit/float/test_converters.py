"""Conversions of 16-bit elements: RTL, emulator, specification and PyTorch agree on every code and on every tie."""

import ctypes
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from amaranth import Module
from amaranth.back import verilog
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from numpy.typing import NDArray

from daedal.base import coverage
from daedal.cosim.builder.library import read_sources
from daedal.cosim.builder.rtl_library import build_verilated
from daedal.hw.config.core import Config
from daedal.hw.execute_unit.fpu.float_narrow import FloatNarrow
from daedal.hw.execute_unit.fpu.float_shorten import FloatShorten
from daedal.hw.execute_unit.fpu.float_unsigned import FloatUnsigned
from daedal.hw.execute_unit.fpu.float_widen import FloatWiden
from daedal.hw.execute_unit.stage_layouts import kind_bits
from daedal.hw.isa.spec.binary32 import as_bits, from_bits
from daedal.hw.isa.spec.narrow import narrow, rounded, widen
from daedal.hw.isa.tools import c_header
from daedal.hw.isa.words import LengthField
from tests.fuzz.configs import TYPES

HERE = Path(__file__).parent
EMULATOR = HERE.parents[2] / "cosim" / "emulator"
NARROW = (LengthField.BINARY16, LengthField.BFLOAT16, LengthField.BFLOAT16_AWAY)
CODES = np.arange(1 << 16, dtype=np.uint32)
Bits = NDArray[np.uint32]
MACHINES = {
    "both": (Config(binary16=1, bfloat16=1), NARROW),
    "binary16": (Config(binary16=1), NARROW[:1]),
    "bfloat16": (Config(bfloat16=1), NARROW[1:]),
    "float8": (replace(TYPES, bfloat16=0), NARROW[:1]),
    "all": (TYPES, NARROW),
}


class Converters(wiring.Component):
    """The converters of a machine."""

    def __init__(self, config: Config) -> None:
        self.config = config
        ports = {"element": In(16), "number": In(32), "kind": In(kind_bits(config))}
        super().__init__(ports | {"widened": Out(32), "narrowed": Out(16), "shortened": Out(32), "integer": Out(32)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.widen, m.submodules.narrow = widen, narrow = FloatWiden(self.config), FloatNarrow(self.config)
        m.submodules.shorten = shorten = FloatShorten(self.config)
        m.submodules.unsigned = unsigned = FloatUnsigned()
        m.d.comb += [
            widen.i.eq(self.element), widen.kind.eq(self.kind), self.widened.eq(widen.o),
            narrow.i.eq(self.number), narrow.kind.eq(self.kind[:2]), self.narrowed.eq(narrow.o),
            shorten.i.eq(self.number), shorten.kind.eq(self.kind[:2]), self.shortened.eq(shorten.o),
            unsigned.i.eq(self.element), self.integer.eq(unsigned.o),
        ]  # fmt: skip
        return m


@cache
def library(machine: str) -> ctypes.CDLL:
    text = verilog.convert(Converters(MACHINES[machine][0]), name="converters", emit_src=coverage.is_wanted())
    files = {**read_sources(HERE, "converters_harness.cpp"), **read_sources(EMULATOR, "narrow_rows.h")}
    files |= {"encodings.h": c_header.generate()}
    return ctypes.CDLL(str(build_verilated("converters", text, files, top="converters")))


def through(machine: str, function: str, kind: LengthField, patterns: Bits) -> Bits:
    """What a function of the harness makes of these patterns."""
    given, result = np.ascontiguousarray(patterns, np.uint32), np.empty(len(patterns), np.uint32)
    pointers = (ctypes.c_void_p(each.ctypes.data) for each in (given, result))
    run, count = library(machine)[function], ctypes.c_uint64(len(given))
    first, second = pointers
    run(ctypes.c_uint32(kind.value), first, count, second)
    return result


def biased(count: int, rng: np.random.Generator) -> Bits:
    """Patterns, half of them with the exponents of binary16's ends and few bits set, or nearly all, behind the last."""
    anything = rng.integers(0, 1 << 32, count, dtype=np.uint32)
    exponents = rng.choice(
        [0, 1, 101, 102, 103, 104, 110, 112, 113, 114, 127, 141, 142, 143, 144, 253, 254, 255], count
    )
    behind = rng.choice([0, 1, 0xFFF, 0x1000, 0x1001, 0x7FFF, 0x8000, 0x8001, 0x17FFF, 0x18000, 0x1FFF], count)
    fraction = (rng.integers(0, 1 << 23, count) & ~0xFFFF ^ behind).astype(np.uint32) & 0x7FFFFF
    shaped = (anything & 1 << 31) | exponents.astype(np.uint32) << 23 | fraction
    return np.where(rng.random(count) < 0.5, anything, shaped).astype(np.uint32)


def ties(kind: LengthField) -> Bits:
    """Every number halfway between two neighbours, and those beside it; infinity's neighbour is what would be next."""
    if kind is LengthField.BINARY16:
        positive = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64)
        after = np.append(positive[1:], 65536.0)
    else:
        positive = from_bits(np.arange(0x7F80, dtype=np.uint32) << 16).astype(np.float64)
        after = np.append(positive[1:], 2.0**128)
    middle = as_bits(((positive + after) / 2).astype(np.float32))
    around = np.concatenate([middle - 1, middle, middle + 1])
    return np.concatenate([around, around | 1 << 31]).astype(np.uint32)


def in_torch(kind: LengthField, patterns: Bits) -> Bits:
    numbers = torch.from_numpy(patterns.view(np.float32).copy())
    dtype = torch.float16 if kind is LengthField.BINARY16 else torch.bfloat16
    return numbers.to(dtype).view(torch.int16).numpy().view(np.uint16).astype(np.uint32)


def is_nan16(kind: LengthField, patterns: Bits) -> NDArray[np.bool_]:
    return (patterns & 0x7FFF) > (0x7C00 if kind is LengthField.BINARY16 else 0x7F80)


@pytest.mark.parametrize("kind", NARROW, ids=lambda kind: kind.name)
def test_the_specification_is_pytorchs(kind: LengthField, rng: np.random.Generator) -> None:
    dtype = torch.float16 if kind is LengthField.BINARY16 else torch.bfloat16
    theirs = torch.from_numpy(CODES.astype(np.uint16).view(np.int16)).view(dtype).float().numpy()
    ours = widen(CODES.astype(np.uint16), kind)
    assert np.array_equal(np.isnan(ours), np.isnan(theirs))
    assert np.array_equal(as_bits(ours)[~np.isnan(ours)], as_bits(theirs)[~np.isnan(ours)])
    assert np.array_equal(narrow(ours, kind)[~np.isnan(ours)], CODES.astype(np.uint16)[~np.isnan(ours)])
    patterns = np.concatenate([ties(kind), biased(400_000, rng)])
    found = narrow(from_bits(patterns), kind).astype(np.uint32)
    nan = np.isnan(from_bits(patterns))
    if kind is LengthField.BFLOAT16_AWAY:  # what PyTorch's sums of bags do, by their formula
        expected = ((patterns.astype(np.uint64) + 0x8000) >> 16).astype(np.uint32) & 0xFFFF
    else:
        expected = in_torch(kind, patterns)
        assert np.array_equal(is_nan16(kind, expected), nan)
    assert np.array_equal(found[~nan], expected[~nan])
    assert is_nan16(kind, found[nan]).all() and len(ties(kind)) > 180_000


@pytest.mark.rtl
@pytest.mark.parametrize("machine", MACHINES)
def test_every_code(machine: str) -> None:
    for kind in MACHINES[machine][1]:
        expected = as_bits(widen(CODES.astype(np.uint16), kind))
        for function in ("rtl_widen", "emulator_widen"):
            assert np.array_equal(through(machine, function, kind, CODES), expected), (kind, function)


@pytest.mark.rtl
def test_every_integer() -> None:
    """Of 8 bits, and so of 4 and 2, whose codes are the first ones: RTL, specification and emulator."""
    codes = np.arange(256, dtype=np.uint32)
    expected = as_bits(codes.astype(np.float32))
    assert np.array_equal(as_bits(widen(codes.astype(np.uint8), LengthField.UNSIGNED8)), expected)
    assert np.array_equal(through("both", "rtl_integer", LengthField.UNSIGNED8, codes), expected)
    for kind, bits in ((LengthField.UNSIGNED8, 8), (LengthField.UNSIGNED4, 4), (LengthField.UNSIGNED2, 2)):
        found = through("both", "emulator_integers", kind, codes)
        assert np.array_equal(found, as_bits((codes & (1 << bits) - 1).astype(np.float32)))


@pytest.mark.rtl
@pytest.mark.parametrize("machine", ["float8", "all"])
def test_every_number_of_8_bits(machine: str) -> None:
    """RTL, specification, emulator, and the other definition: the code's bits as binary32, times a power of two."""
    codes = np.arange(256, dtype=np.uint32)
    for kind, bits, bias in ((LengthField.FLOAT8_E4, 4, 7), (LengthField.FLOAT8_E5, 5, 15)):
        magnitudes = from_bits((codes & 0x7F) << (16 + bits)).astype(np.float64) * 2.0 ** (127 - bias)
        expected = as_bits(magnitudes.astype(np.float32)) | (codes & 0x80) << 24
        assert np.array_equal(as_bits(widen(codes.astype(np.uint8), kind)), expected)
        for function in ("rtl_widen", "emulator_widen", "emulator_integers"):
            assert np.array_equal(through(machine, function, kind, codes), expected), (kind, function)


@pytest.mark.rtl
@pytest.mark.parametrize("count", [200_000, pytest.param(10_000_000, marks=pytest.mark.full)])
@pytest.mark.parametrize("machine", MACHINES)
def test_every_tie_and_biased_patterns(machine: str, count: int, rng: np.random.Generator) -> None:
    for kind in MACHINES[machine][1]:
        patterns = np.concatenate([ties(kind), biased(count, rng)])
        expected = narrow(from_bits(patterns), kind)
        for function in ("rtl_narrow", "emulator_narrow"):
            found = through(machine, function, kind, patterns)
            wrong = np.flatnonzero(found != expected)
            assert not len(wrong), f"{kind} {function}: {patterns[wrong[0]]:#x} to {found[wrong[0]]:#x}"
        expected = as_bits(rounded(from_bits(patterns), kind))
        for function in ("rtl_shorten", "emulator_shorten"):
            found = through(machine, function, kind, patterns)
            wrong = np.flatnonzero(found != expected)
            assert not len(wrong), f"{kind} {function}: {patterns[wrong[0]]:#x} to {found[wrong[0]]:#x}"
            assert np.array_equal(through(machine, function, LengthField.ELEMENTS, patterns), patterns)
