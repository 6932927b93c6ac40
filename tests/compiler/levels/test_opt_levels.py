"""Optimisation levels: the same bits at each, what each leaves out, and what cannot be done at a low one."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import daedal
from daedal import f32, i64
from daedal.compiler.frontends.torch.dynamo import Options
from daedal.compiler.opt_levels import OPT_LEVELS
from daedal.compiler.pass_table import BY_OPT, LEVELS, make_pass, value_at
from daedal.compiler.pipeline import compile_scf
from daedal.driver.memory.layout import longest_whole, row_step
from daedal.hw.config.core import Config
from tests.compiler.kernels.kernel_support import check
from tests.compiler.kernels.test_kernels import KERNELS, arguments
from tests.compiler.layers.compiler_support import ddr3, device, random_bags, run, same_bits, wild_table
from tests.compiler.layers.test_compiler_lists import Collection, inputs_for, of_all_kinds
from tests.compiler.scalars.scalar_kernels import message_passing, triples

__all__ = ["ddr3", "device"]

D, E, N, V = daedal.dims("D E N V")


@daedal.kernel
def spmm(out: f32[V, D], x: f32[N, D], values: f32[E], columns: i64[E], rows: i64[V + 1]):
    """A sparse matrix times a dense one."""
    for v in range(V):
        for e in range(rows[v], rows[v + 1]):
            for d in range(D):
                out[v, d] += values[e] * x[columns[e], d]


@daedal.kernel
def roots(s: f32[N], out: f32[N, D], w: f32[N], x: f32[N, D]):
    """A single number beside a row."""
    for i in range(N):
        a = daedal.sqrt(w[i])
        s[i] = a
        for d in range(D):
            out[i, d] = a * x[i, d]


@daedal.kernel
def between_nests(out: f32[V, D], x: f32[N, D]):
    """A local row that one nest fills and another one stores."""
    row = daedal.zeros(D)
    for i in range(N):
        for d in range(D):
            row[d] += x[i, d]
    for v in range(V):
        for d in range(D):
            out[v, d] = row[d]


class Weighted(nn.Module):
    def __init__(self, bag: nn.EmbeddingBag) -> None:
        super().__init__()
        self.bag = bag

    def forward(self, indices: Tensor, offsets: Tensor, weights: Tensor) -> Tensor:
        result: Tensor = self.bag(indices, offsets, per_sample_weights=weights)
        return result


LAYERS = ("sum", "mean", "max", "padded", "weighted", "gather")


def layer(name: str, width: int, rng: np.random.Generator) -> tuple[nn.Module, tuple[Tensor, ...]]:
    table = wild_table(20, width, rng)
    if name == "gather":
        return nn.Embedding.from_pretrained(table), (torch.from_numpy(rng.integers(0, 20, (3, 5))),)
    mode = name if name in ("mean", "max") else "sum"
    padding = 3 if name == "padded" else None
    bag = nn.EmbeddingBag.from_pretrained(table, mode=mode, include_last_offset=True, padding_idx=padding)
    indices, offsets = random_bags(20, 7, rng, types=(torch.int64, torch.int64))
    if name == "weighted":
        weights = torch.from_numpy(rng.standard_normal(len(indices)).astype(np.float32))
        return Weighted(bag), (indices, offsets, weights)
    return bag, (indices, offsets)


def check_layer(device: daedal.Device, name: str, width: int, opt: int, rng: np.random.Generator) -> Any:
    module, inputs = layer(name, width, rng)
    executable = daedal.compile(module, inputs, device=device, opt=opt)
    assert same_bits(executable(*inputs), module(*inputs))
    return executable


def longest_row(kernel: Any) -> int:
    """Elements of the longest row that a callback fetches."""
    sizes = [int(line.split(" bytes ")[1].split()[0]) for line in kernel.ir("dlc").splitlines() if "dlc.fetch" in line]
    return max(sizes) // 4


# ---------------------------------------------------------------------- the same bits


@pytest.mark.parametrize("opt", OPT_LEVELS)
@pytest.mark.parametrize("width", [1, 4, 6, 16, 300])
@pytest.mark.parametrize("name", LAYERS)
def test_layers(device: daedal.Device, name: str, width: int, opt: int, rng: np.random.Generator) -> None:
    executable = check_layer(device, name, width, opt, rng)
    (kernel,) = executable.kernels.values()
    step = row_step(4 * width, device.config.bus_bytes, longest_whole(device.config)) // 4
    most = {0: 1, 1: min(device.config.lanes, step)}.get(kernel.opt, width)
    if kernel.opt < 3:
        assert longest_row(kernel) == min(width, most, device.config.vl_max)
    if name != "padded":
        assert (kernel.opt, kernel.lacking) == (opt, "")
    assert f"optimisation level O{kernel.opt}" in executable.explain()


@pytest.mark.parametrize("opt", OPT_LEVELS)
@pytest.mark.parametrize("name", KERNELS)
def test_kernels(ddr3: daedal.Device, name: str, opt: int, rng: np.random.Generator) -> None:
    executable = check(ddr3, KERNELS[name], *arguments(name, rng, 6), opt=opt)
    assert executable.kernels[name].opt >= opt


def sparse(rng: np.random.Generator, width: int) -> tuple[Any, ...]:
    rows = np.array([0, 3, 3, 8, 12], np.int64)
    x = rng.standard_normal((9, width)).astype(np.float32)
    values, columns = rng.standard_normal(12).astype(np.float32), rng.integers(0, 9, 12)
    return np.zeros((4, width), np.float32), x, values, columns, rows


@pytest.mark.parametrize("opt", OPT_LEVELS)
def test_sparse_times_dense(device: daedal.Device, opt: int, rng: np.random.Generator) -> None:
    executable = check(device, spmm, *sparse(rng, 10), opt=opt)
    assert executable.kernels["spmm"].opt == opt


@pytest.mark.parametrize("opt", OPT_LEVELS)
def test_reductions_keep_their_tree(device: daedal.Device, opt: int, rng: np.random.Generator) -> None:
    for case in (message_passing(rng, "sigmoid", 20), triples(rng, "distmult", 20)):
        kernel = compile_scf(case.text, device.config, opt)
        found = run(device, kernel, values=case.values, **case.buffers)
        assert same_bits(torch.from_numpy(found), torch.from_numpy(case.expected))
        assert kernel.opt == max(opt, 2)
        assert ("rows of 20 elements are reduced" in kernel.lacking) == (opt < 2)


@pytest.mark.parametrize("opt", OPT_LEVELS)
def test_tables_of_all_kinds(ddr3: daedal.Device, opt: int, rng: np.random.Generator) -> None:
    module = Collection(of_all_kinds(rng))
    inputs = inputs_for(module, 4, rng)
    found = daedal.compile(module, (inputs,), device=ddr3, opt=opt)(inputs)
    assert all(same_bits(a, b) for a, b in zip(found, module(inputs), strict=True))


@pytest.mark.parametrize("opt", OPT_LEVELS)
@pytest.mark.parametrize("width", [12, 600])
def test_single_numbers_beside_rows(ddr3: daedal.Device, width: int, opt: int, rng: np.random.Generator) -> None:
    x, w = rng.standard_normal((5, width)).astype(np.float32), rng.random(5).astype(np.float32)
    check(ddr3, roots, np.zeros(5, np.float32), np.zeros_like(x), w, x, opt=opt)


@pytest.mark.rtl
@pytest.mark.slow
def test_on_the_rtl(rng: np.random.Generator) -> None:
    with daedal.Device.open("verilator", config="ddr3", memory="ideal:stall=0.1,seed=2") as rtl:
        for opt in OPT_LEVELS:
            for name in LAYERS:
                assert check_layer(rtl, name, 6, opt, rng).stats.cycles > 0
            check(rtl, spmm, *sparse(rng, 10), opt=opt)
            for case in (message_passing(rng, "sigmoid", 6), triples(rng, "distmult", 6)):
                found = run(rtl, compile_scf(case.text, rtl.config, opt), values=case.values, **case.buffers)
                assert same_bits(torch.from_numpy(found), torch.from_numpy(case.expected))


# ---------------------------------------------------------------------- what the levels are


def kernel_at(ddr3: daedal.Device, name: str, width: int, opt: int) -> tuple[Any, str]:
    module, inputs = layer(name, width, np.random.default_rng(0))
    executable = daedal.compile(module, inputs, device=ddr3, opt=opt)
    (kernel,) = executable.kernels.values()
    return kernel, executable.asm()


def test_rows_are_stored_from_memory_to_memory_at_the_best_level_only(ddr3: daedal.Device) -> None:
    for opt in OPT_LEVELS:
        text = kernel_at(ddr3, "gather", 16, opt)[0].ir("dlc")
        assert ('dlc.fetch "store"' in text) == ("dlc.pop" not in text) == (opt == 3)


def test_bags_come_in_turn_at_the_best_level_only(ddr3: daedal.Device) -> None:
    assert ["deal=1" in kernel_at(ddr3, "sum", 4, opt)[1] for opt in OPT_LEVELS] == [False, False, False, True]


def test_sums_are_set_to_zero_below_the_best_level(ddr3: daedal.Device) -> None:
    assert ["clear=1" in kernel_at(ddr3, "sum", 16, opt)[1] for opt in OPT_LEVELS] == [False, False, False, True]
    assert all("clear=1" in kernel_at(ddr3, "max", 16, opt)[1] for opt in OPT_LEVELS)


def test_one_queue_below_the_best_level(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    for opt in OPT_LEVELS:
        executable = daedal.compile(KERNELS["products"], arguments("products", rng, 12), device=ddr3, opt=opt)
        assert ('"vector1"' in executable.ir("dlc")) == (opt == 3)


def test_the_best_level_is_the_default(ddr3: daedal.Device) -> None:
    module, inputs = layer("sum", 16, np.random.default_rng(0))
    executable = daedal.compile(module, inputs, device=ddr3)
    assert executable.program == daedal.compile(module, inputs, device=ddr3, opt=3).program
    assert executable.explain().splitlines()[1].endswith("on the device; optimisation level O3")


def test_levels_cost_callbacks(ddr3: daedal.Device) -> None:
    """A row of 16 elements is fetched by 16, 4 and 1 callbacks."""
    rows = []
    for opt in OPT_LEVELS:
        module, inputs = layer("sum", 16, np.random.default_rng(0))
        executable = daedal.compile(module, inputs, device=ddr3, opt=opt)
        executable(*inputs)
        rows.append(executable.stats.rows)
    assert rows == [16 * rows[3], 4 * rows[3], rows[3], rows[3]]


# ---------------------------------------------------------------------- the table of passes


def test_the_table_is_what_passes_get() -> None:
    """Every row is an option of a pass with a value at every level, or something that the back end does."""
    config = Config.preset("ddr3")
    names = {name for passes in LEVELS.values() for name in passes}
    for row in BY_OPT:
        name, _, option = row.rstrip("}").partition("{")
        assert (name in names) == bool(option), row
        values = [value_at(row, opt, config) for opt in OPT_LEVELS]
        assert len(BY_OPT[row]) == len(OPT_LEVELS) and len({*values}) > 1, row
        made = [getattr(make_pass(name, config, "warn", opt), option) for opt in OPT_LEVELS] if option else values
        assert made == values
    assert [value_at("tile-columns{elements}", opt, config) for opt in OPT_LEVELS] == [1, 4, 256, 256]
    others = names - {row.partition("{")[0] for row in BY_OPT}
    assert all(make_pass(name, config, "warn", 0) == make_pass(name, config, "warn", 3) for name in others)


def test_the_page_has_all_rows_of_the_table() -> None:
    page = (Path(daedal.__file__).parents[1] / "docs" / "compiler.md").read_text()
    section = page.partition("## Optimisation levels\n")[2].partition("\n## ")[0]
    assert [row for row in BY_OPT if f"`{row}`" not in section] == []


# ---------------------------------------------------------------------- what cannot be done


def test_explain_says_what_each_pass_did(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    executable = daedal.compile(KERNELS["pooled"], arguments("pooled", rng, 12), device=ddr3)
    assert "pass " not in executable.explain()
    lines = [line for line in executable.explain(passes=True).splitlines() if line.startswith("pass ")]
    passes = [name for level in ("slc", "slcv", "dlc") for name in LEVELS[level]]
    assert [line.partition(":")[0] for line in lines] == [f"pass {name}" for name in passes]
    (vectorised,) = (line for line in lines if "convert-slc-to-slcv" in line)
    assert "+1 slcv.store" in vectorised and "-3 memref.store" in vectorised
    assert "pass functions-from-calls: no operation more or fewer" in lines
    layer = nn.EmbeddingBag(9, 20, mode="mean")
    text = daedal.compile(layer, (torch.tensor([1, 2, 3]), torch.tensor([0, 2])), device=ddr3).explain(passes=True)
    assert text.count("pass lower-emb: ") == 1 and "-1 emb.bag" in text


def test_explain_says_why_not(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    executable = daedal.compile(KERNELS["sums"], arguments("sums", rng, 12), device=ddr3, opt=1)
    assert "optimisation level O2, because at O1 loop %i: rows of 12 elements are reduced" in executable.explain()


def test_a_local_row_of_two_nests_is_whole(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    def data(width: int) -> tuple[Any, Any]:
        return np.zeros((3, width), np.float32), rng.standard_normal((4, width)).astype(np.float32)

    executable = check(ddr3, between_nests, *data(12), opt=0)
    assert "%row of 12 elements is used in another nest too" in executable.kernels["between_nests"].lacking
    with pytest.raises(daedal.UnsupportedOperation, match="%row of 600 elements is used in another nest too"):
        daedal.compile(between_nests, data(600), device=ddr3)


def test_what_fits_at_no_level(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    with pytest.raises(daedal.UnsupportedOperation, match="it takes 256 at most"):
        daedal.compile(KERNELS["sums"], arguments("sums", rng, 600), device=ddr3, opt=0)


@pytest.mark.parametrize("opt", [-1, 4, "2", 1.0, True, None])
def test_other_levels(ddr3: daedal.Device, opt: Any) -> None:
    module, inputs = layer("sum", 4, np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"opt must be one of 0, 1, 2, 3, not"):
        daedal.compile(module, inputs, device=ddr3, opt=opt)


def test_a_machine_with_few_levels(rng: np.random.Generator) -> None:
    """Where there is no level for the pieces of a row, each is a nest of its own."""
    with daedal.Device.open("emulator", config=Config.preset("minimum")) as small:
        for opt in OPT_LEVELS:
            (kernel,) = check_layer(small, "max", 6, opt, rng).kernels.values()
            assert kernel.opt == opt
            assert kernel.ir("slcv").count("slc.for %b") == (6 if opt < 2 else 2)
        (kernel,) = check_layer(small, "sum", 6, 0, rng).kernels.values()
        assert kernel.opt == 3
        assert "at O2 the callbacks need 6 callbacks; configuration minimum has 4" in kernel.lacking


def test_an_option_of_torch_compile(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    module, inputs = layer("sum", 16, rng)
    torch._dynamo.reset()
    compiled = torch.compile(module, backend="daedal", options={"device": ddr3, "opt": 1})
    with torch.no_grad():
        assert same_bits(compiled(*inputs), module(*inputs))
    (graph,) = daedal.graphs(ddr3)
    assert "on the device; optimisation level O1" in graph.explain()
    torch._dynamo.reset()
    with pytest.raises(ValueError, match="opt must be one of"):
        Options.read({"opt": 4})
