"""Moves of tensors to where they are, and attributes that are not used, as Keras has them around each operation."""

import torch
from torch import Tensor, nn

import daedal


class Keras(nn.Module):
    """Look-ups as a model of Keras on PyTorch has them."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ParameterList(nn.Parameter(torch.randn(20 + n, 8)) for n in range(3))

    def forward(self, ids: Tensor, device: str = "cpu") -> Tensor:
        rows = []
        for table in self.tables:
            _ = ids.is_meta
            rows.append(nn.functional.embedding(ids.to(device), table.to(device)))
        return torch.stack(rows)


def test_look_ups_behind_moves_are_one_launch_of_resident_tables() -> None:
    model = Keras()
    with daedal.Device.open("emulator", config="ddr3") as device:
        compiled = torch.compile(model, backend="daedal", dynamic=True, options={"device": device})
        for samples in (4, 7):
            ids = torch.randint(20, (samples,))
            with torch.no_grad():
                assert torch.equal(compiled(ids), model(ids))
        (graph,) = daedal.graphs(device)
        assert graph.stats.launches == 1
        assert device.table_uploads == 3
        assert graph.explain().startswith("device: 3 of 3 operations, in 1 launch")


def test_moves_elsewhere_stay() -> None:
    model = Keras()
    with daedal.Device.open("emulator", config="ddr3") as device, torch.no_grad():
        compiled = torch.compile(model, backend="daedal", options={"device": device})
        ids = torch.randint(20, (4,))
        assert compiled(ids, "meta").device.type == "meta"
