"""Kernels that are submitted: futures, what is in the arrays when, and who waits for whom."""

import asyncio
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import daedal
from daedal import f32, i64
from daedal.hw.config.core import LAUNCH_QUEUE_DEPTH
from tests.compiler.kernels.kernel_support import floats, in_python, same_bits
from tests.compiler.kernels.test_kernels import pooled
from tests.compiler.layers.compiler_support import ddr3

__all__ = ["ddr3"]

B, D, N = daedal.dims("B D N")


@daedal.kernel
def doubled(out: f32[B, D], x: f32[B, D]):
    for b in range(B):
        for d in range(D):
            out[b, d] = x[b, d] + x[b, d]


@daedal.kernel
def chosen(out: f32[B, D], table: f32[N, D], idx: i64[B]):
    for b in range(B):
        for d in range(D):
            out[b, d] = table[idx[b], d]


def bags(rng: np.random.Generator, width: int = 6) -> list[Any]:
    table, idx = floats(rng, 9, width), rng.integers(0, 9, 12)
    return [np.zeros((3, width), np.float32), table, idx, np.array([0, 5, 5, 12])]


def test_futures_fill_their_arrays(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    jobs = [bags(rng) for _ in range(2 * LAUNCH_QUEUE_DEPTH + 1)]
    wanted = [in_python(pooled, *job)[0] for job in jobs]
    executable = daedal.compile(pooled, jobs[0], device=ddr3)
    futures = [executable.submit(*job) for job in jobs]
    assert not futures[-1].done()
    assert not jobs[-1][0].any(), "nothing is written before the launch has ended"
    assert [future.result() for future in futures] == [None] * len(jobs)
    assert all(future.done() and future.stats.launches == 1 for future in futures)
    assert all(same_bits(job[0], want) for job, want in zip(jobs, wanted, strict=True))
    assert executable.stats.launches == 0, "these are of calls"


def test_tensors_and_await(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    jobs = [[torch.from_numpy(array) for array in bags(rng)] for _ in range(3)]
    wanted = [in_python(pooled, *(array.numpy() for array in job))[0] for job in jobs]
    executable = daedal.compile(pooled, jobs[0], device=ddr3)

    async def run() -> list[Any]:
        futures = [executable.submit(*job) for job in jobs]
        return [await future for future in futures]

    assert asyncio.run(run()) == [None] * 3
    assert all(same_bits(job[0].numpy(), want) for job, want in zip(jobs, wanted, strict=True))


def test_inputs_are_read_when_it_is_submitted(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    x, out = floats(rng, 4, 8), np.zeros((4, 8), np.float32)
    executable = daedal.compile(doubled, (out, x), device=ddr3)
    future, wanted = executable.submit(out, torch.from_numpy(x).clone()), 2 * x
    x[:] = 0
    future.result()
    assert same_bits(out, wanted)


def test_who_takes_an_array_waits_for_it(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    """A result is the input of another kernel, of the same one again, and the table of a module."""
    a, b = floats(rng, 4, 8), np.zeros((4, 8), np.float32)
    c, d = np.zeros((8, 8), np.float32), np.zeros((4, 8), np.float32)
    twice = daedal.compile(doubled, (b, a), device=ddr3)
    other = daedal.compile(chosen, (d, a, np.array([3, 1, 1, 0])), device=ddr3)
    futures = [twice.submit(b, a), twice.submit(c[:4], b), other.submit(d, c[2:], np.array([3, 1, 1, 0]))]
    twice(c[4:], c[:4])
    assert same_bits(c[:4], 4 * a)
    assert same_bits(c[4:], 8 * a)
    for future in futures:
        future.result()
    assert same_bits(d, np.concatenate([4 * a[2:], np.zeros((4, 8), np.float32)])[[3, 1, 1, 0]])
    bag = nn.EmbeddingBag.from_pretrained(torch.from_numpy(c), mode="sum")
    indices = torch.tensor([[0, 5], [7, 2]])
    module = daedal.compile(bag, (indices,), device=ddr3)
    for run in (module, lambda given: module.submit(given).result()):
        future = twice.submit(bag.weight[:4], floats(rng, 4, 8))
        found = run(indices)
        assert future.done()
        assert same_bits(found.numpy(), bag(indices).numpy())


def test_a_promise_outlasts_the_wait_for_another_one(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    """A third call into the first one's array waits for that alone; who takes the second one's still waits for it.

    All arrays are tables that were uploaded before: what has to be uploaded waits for every launch, promised or not.
    """
    x, (first, second, third) = floats(rng, 4, 8), np.zeros((3, 4, 8), np.float32)
    executable = daedal.compile(doubled, (first, x), device=ddr3)
    executable(third, x)
    executable(third, second)
    executable.submit(first, x)
    waiting = executable.submit(second, x)
    executable.submit(first, x)
    assert not waiting.done()
    executable(third, second)
    assert same_bits(third, 4 * x)
    assert waiting.done()


def test_accumulations_into_one_array(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    job = bags(rng)
    executable = daedal.compile(pooled, job, device=ddr3)
    wanted = in_python(pooled, *in_python(pooled, *job))[0]
    futures = [executable.submit(*job) for _ in range(2)]
    futures[1].result()
    assert futures[0].done()
    assert same_bits(job[0], wanted)


@pytest.mark.parametrize("place", [0, 1])
def test_an_error_comes_with_its_own_future(ddr3: daedal.Device, place: int, rng: np.random.Generator) -> None:
    jobs = [bags(rng) for _ in range(3)]
    for job in jobs:
        job[1] = jobs[0][1]  # another table has to be uploaded, and that waits for launches in work
    wanted = [in_python(pooled, *job)[0] for job in jobs]
    jobs[place][2][4] = 9
    jobs[place][0][:] = 7
    executable, free = daedal.compile(pooled, jobs[0], device=ddr3), ddr3.free_bytes
    futures = [executable.submit(*job) for job in jobs]
    for number in range(place):
        futures[number].result()
        assert same_bits(jobs[number][0], wanted[number])
    with pytest.raises(daedal.IndexOutOfRange, match=r"element 4 of idx, and must be below 9"):
        futures[place].result()
    with pytest.raises(daedal.IndexOutOfRange, match="element 4 of idx"):
        futures[place].result()
    assert (jobs[place][0] == 7).all()
    for number in range(place + 1, 3):
        futures[number].result()
        assert same_bits(jobs[number][0], wanted[number])
    assert ddr3.free_bytes <= free


def test_what_is_refused_at_once(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    job = bags(rng)
    executable = daedal.compile(pooled, job, device=ddr3)
    with pytest.raises(daedal.UnsupportedOperation, match="must be given 4 arguments"):
        executable.submit(*job[:3])
    with pytest.raises(daedal.UnsupportedOperation, match="must not share memory"):
        executable.submit(job[1][:3], *job[1:])
    with pytest.raises(daedal.InvalidOffsets, match="must not be negative where a loop starts"):
        executable.submit(*job[:3], np.array([0, -1, 5, 12]))


def test_warnings_come_with_the_result(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    job = bags(rng)
    job[2][3] = -4
    executable = daedal.compile(pooled, job, device=ddr3, bounds="warn")
    future = executable.submit(*job)
    with pytest.warns(daedal.BoundsWarning, match="1 indices were out of range, the first one met -4"):
        future.result()
    assert future.stats.bounds_warnings == 1


def test_a_timeout_leaves_it_running(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    job = bags(rng)
    wanted = in_python(pooled, *job)[0]
    future = daedal.compile(pooled, job, device=ddr3).submit(*job)
    with pytest.raises(TimeoutError):
        future.result(timeout=0)
    with pytest.raises(TimeoutError):
        future.exception(timeout=0)
    assert future.exception() is None
    assert repr(future) == "<Submitted, 1 launches, done>"
    future.result()
    assert same_bits(job[0], wanted)


def test_the_error_without_raising_it(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    job = bags(rng)
    job[2][3] = -4
    future = daedal.compile(pooled, job, device=ddr3).submit(*job)
    error = future.exception()
    assert isinstance(error, daedal.IndexOutOfRange) and "-4" in str(error)
    assert future.exception() is error and repr(future) == "<Submitted, 0 launches, IndexOutOfRange>"
    with pytest.raises(daedal.IndexOutOfRange) as raised:
        future.result()
    assert raised.value is error


def test_closed_devices(rng: np.random.Generator) -> None:
    job = bags(rng)
    with daedal.Device.open("emulator", config="ddr3") as device:
        executable = daedal.compile(pooled, job, device=device)
    with pytest.raises(daedal.DeviceClosed):
        executable.submit(*job)
