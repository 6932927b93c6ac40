"""How tensors lie in memory, and changes of it that PyTorch does not count: results are PyTorch's all the same."""

import pytest
import torch
from torch import nn
from torch.nn import functional

import daedal
from daedal.errors import OutOfDeviceMemory, UnsupportedOperation

INDICES, OFFSETS = torch.tensor([0, 1, 2, 3, 4, 4, 1]), torch.tensor([0, 2, 2, 5])


class Function(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


@pytest.fixture(scope="module")
def device():
    with daedal.Device.open("emulator") as opened:
        yield opened


def bits(tensor):
    return tensor.detach().contiguous().view(torch.int32)


def check(device, function, *inputs):
    """Equal bits, and the same layout of the result, which decides how PyTorch goes on."""
    got, want = daedal.compile(Function(function), inputs, device=device)(*inputs), function(*inputs)
    assert got.shape == want.shape
    assert torch.equal(bits(got), bits(want))
    assert got.stride() == want.stride()


OPTIMIZERS = {
    "adam": lambda weights: torch.optim.Adam(weights, fused=True),
    "sgd": lambda weights: torch.optim.SGD(weights, lr=0.1, fused=True),
    "plain": lambda weights: torch.optim.SGD(weights, lr=0.1),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_a_table_is_what_an_optimizer_made_of_it(device, optimizer):
    module = nn.EmbeddingBag(50, 64, mode="sum")
    executable = daedal.compile(module, (INDICES, OFFSETS), device=device)
    step = optimizer(module.parameters())
    for _ in range(3):
        assert torch.equal(executable(INDICES, OFFSETS), module(INDICES, OFFSETS).detach())
        module(INDICES, OFFSETS).sum().backward()
        step.step()
    assert torch.equal(executable(INDICES, OFFSETS), module(INDICES, OFFSETS).detach())


def test_several_tables_are_what_a_fused_optimizer_made_of_them(device):
    """A launch that was made ready for batches like the last one."""
    modules = nn.ModuleList(nn.EmbeddingBag(20, 8, mode="sum") for _ in range(3))
    model = Function(lambda i, o: torch.cat([each(i, o) for each in modules], 1))
    model.modules_ = modules
    executable = daedal.compile(model, (INDICES, OFFSETS), device=device)
    step = torch.optim.Adam(model.parameters(), fused=True)
    for _ in range(4):
        with torch.no_grad():
            assert torch.equal(executable(INDICES, OFFSETS), model(INDICES, OFFSETS))
        model(INDICES, OFFSETS).sum().backward()
        step.step()


def test_a_table_of_another_type_and_back(device):
    """Its memory may be where it was, with something else in it."""
    module = nn.EmbeddingBag(500, 64, mode="sum")
    executable = daedal.compile(module, (INDICES, OFFSETS), device=device)
    for _ in range(6):
        for there, back in ((module.double, module.float), (module.half, module.float)):
            assert torch.equal(executable(INDICES, OFFSETS), module(INDICES, OFFSETS).detach())
            there()
            module.weight.data.mul_(1.5)
            back()
    assert torch.equal(executable(INDICES, OFFSETS), module(INDICES, OFFSETS).detach())


@pytest.mark.parametrize("width", [4, 5, 17, 64])
@pytest.mark.parametrize("indices", [
    torch.randint(20, (40, 6)).t(), torch.randint(-20, 20, (3, 4, 5)).permute(2, 0, 1), torch.randint(20, (9,))[::2],
])  # fmt: skip
def test_rows_in_the_order_of_their_indices_in_memory(device, width, indices):
    table = torch.randn(20, width)
    check(device, lambda t, i: t[i], table, indices)
    check(device, lambda t, i: (t[i] * 2).sum(0), table, indices)
    if indices.dim() > 1:
        check(device, lambda t, i: t[i].sum(1), table, indices)
        check(device, lambda t, i: t[i].mean(1), table, indices)
    check(device, lambda t, i: functional.embedding(i, t), table, indices.abs() % 20)


def test_contiguous_indices_are_looked_up_by_the_device(device):
    table, indices = torch.randn(20, 8), torch.randint(20, (6, 40)).t()
    inputs = (table, indices.contiguous())
    executable = daedal.compile(Function(lambda t, i: t[i]), inputs, device=device)
    executable(*inputs)
    assert "which must be contiguous" not in str(executable.explain())
    executable(table, indices)
    assert "which must be contiguous" in str(executable.explain())


@pytest.mark.parametrize("add", [torch.Tensor.index_add_, torch.Tensor.index_add])
def test_sums_into_rows_that_are_not_contiguous(device, add):
    rows, keys = torch.randn(5, 400).t(), torch.randint(400, (400,))
    check(device, lambda r, k: add(torch.zeros_like(r), 0, k, r), rows, keys)
    check(device, lambda r, k: add(torch.zeros_like(r), 0, k, r).sum(), rows, keys)


def negated(*shape):
    """A view of which PyTorch has not changed the signs yet."""
    view = torch.randn(*shape, dtype=torch.complex64).conj().imag
    assert view.is_neg()
    return view


@pytest.mark.parametrize("add", ["scatter_add", "amax", "expand_as"])
def test_one_destination_for_all_rows(device, add):
    """An index of one number, expanded to all rows and columns."""

    def layer(index, rows):
        wide = index.expand_as(rows) if add == "expand_as" else index.expand(5, 4)
        zeros = torch.zeros(3, 4)
        if add == "amax":
            return zeros.scatter_reduce(0, wide, rows, "amax", include_self=False)
        return zeros.scatter_add(0, wide, rows)

    check(device, layer, torch.tensor([[2]]), torch.randn(5, 4))


@pytest.mark.parametrize("compiles", [daedal.compile, None], ids=["compile", "torch.compile"])
def test_zeros_that_go_into_a_tensor_that_is_there(device, compiles):
    """What is added to is not made for it: others see it."""

    class Into(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("sums", torch.ones(3, 4))

        def forward(self, index, rows):
            torch.zeros(3, 4, out=self.sums).index_add_(0, index, rows)
            return self.sums.clone(), functional.embedding(index, rows)

    module, inputs = Into(), (torch.tensor([0, 1]), torch.randn(2, 4))
    with torch.no_grad():
        want = module(*inputs)[0]
        module.sums.fill_(7)
        if compiles is None:
            compiled = torch.compile(module, backend="daedal", options={"device": device})
        else:
            compiled = daedal.compile(module, inputs, device=device)
        assert torch.equal(compiled(*inputs)[0], want)
    assert torch.equal(module.sums, want)


def test_views_whose_signs_are_still_to_be_changed(device):
    def bag(table, weights):
        return functional.embedding_bag(INDICES, table, OFFSETS, per_sample_weights=weights, mode="sum")

    check(device, bag, negated(20, 8), torch.randn(7))
    check(device, bag, torch.randn(20, 8), negated(7))
    weights = torch._neg_view(torch.randn(7, 1))
    check(device, lambda t, w, k: torch.zeros(10, 5).index_add(0, k, t[INDICES] * w), torch.randn(20, 5), weights,
          INDICES.sort()[0])  # fmt: skip


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_indices_are_refused(device):
    executable = daedal.compile(nn.EmbeddingBag(20, 5), (INDICES, OFFSETS), device=device)
    nested = torch.nested.nested_tensor([torch.tensor([1, 2]), torch.tensor([3])])
    with pytest.raises(UnsupportedOperation, match="indices must be dense, not nested"):
        executable(nested)


def test_memory_of_tables_that_are_gone_is_used_again():
    """Whatever their names were."""
    with daedal.Device.open("emulator", memory_bytes=1 << 20) as device:
        for number in range(20):
            assert device.bind_table(f"table{number}", torch.randn(2000, 16)).rows == 2000
        for _ in range(20):  # what is compiled of a module hangs together with it in cycles
            module = nn.EmbeddingBag(2000, 16, mode="sum")
            assert daedal.compile(module, (INDICES, OFFSETS), device=device)(INDICES, OFFSETS).shape == (4, 16)
        held = [torch.randn(2000, 16) for _ in range(20)]
        with pytest.raises(OutOfDeviceMemory):
            [device.bind_table(f"held{number}", table) for number, table in enumerate(held)]
