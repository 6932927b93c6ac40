"""TorchRec's planner on the tables of the suite ``plans``: loads as that suite has them beside Daedal's."""

from typing import Any

import pytest
import torch

from daedal.bench.suites.plans import BATCH, TORCHREC, drawn
from daedal.hw.config.core import Config
from daedal.system.planner import Planner

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]

GIB = 1 << 30


def balance(tables: int, devices: int, kind: str) -> tuple[float, set[str]]:
    """Longest ÷ mean load of TorchRec's plan, by its own model of such devices, and how it cuts tables."""
    from torchrec import EmbeddingBagCollection, EmbeddingBagConfig
    from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
    from torchrec.distributed.planner import EmbeddingShardingPlanner, ParameterConstraints, Topology

    demands = drawn(tables)
    configs = [
        EmbeddingBagConfig(
            name=each.table.name, embedding_dim=each.table.dim, num_embeddings=each.rows,
            feature_names=[f"of {each.table.name}"],
        )
        for each in demands
    ]  # fmt: skip
    lengths = {each.table.name: ParameterConstraints(pooling_factors=[each.lookups / each.bags]) for each in demands}
    topology = Topology(
        world_size=devices, compute_device=kind, local_world_size=devices, ddr_cap=16 * GIB,
        hbm_cap=None if kind == "cpu" else 16 * GIB,
    )  # fmt: skip
    planner: Any = EmbeddingShardingPlanner(topology=topology, batch_size=BATCH, constraints=lengths)
    module = torch.nn.Sequential(EmbeddingBagCollection(device=torch.device("meta"), tables=configs))
    planner.plan(module, [EmbeddingBagCollectionSharder()])
    loads = [0.0] * devices
    for option in planner._best_plan:
        for shard in option.shards:
            loads[shard.rank] += shard.perf.total
    return max(loads) * devices / sum(loads), {option.sharding_type for option in planner._best_plan}


@pytest.mark.parametrize(("tables", "devices"), TORCHREC)
def test_loads_are_those_that_figures_are_shown_beside(tables: int, devices: int) -> None:
    found, _ = balance(tables, devices, "cpu")
    assert found == pytest.approx(TORCHREC[tables, devices], abs=0.002)
    plan = Planner(drawn(tables), Config.preset("ddr3"), "litedram-ddr3-x16", devices, 16 * GIB, 0.1).plan()
    assert plan.balance <= found


def test_for_gpus_it_cuts_sums() -> None:
    found, ways = balance(26, 8, "cuda")
    assert found == pytest.approx(1.0, abs=0.002)
    assert ways == {"row_wise"}
