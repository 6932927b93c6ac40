"""``daedal.hot_rows``: the rows that a sample reads most, numbered first, and batches that read no others.

The scheme is FAE's (Adnan, Maboud, Mahajan, Nair: *Accelerating Recommendation System Training by Leveraging Popular
Choices*, VLDB 15, 2021): count the accesses of a sample, keep the most popular rows together, and sort samples into
batches that need only those and batches that need others too.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import default_collate

from daedal.base.messages import shown
from daedal.compiler.frontends.torch.hot.batches import HotBatches
from daedal.compiler.frontends.torch.hot.look_ups import Inputs, LookUp, inputs_of, look_ups, outputs, same
from daedal.compiler.frontends.torch.hot.numbering import (
    OptimizerNumbering,
    Table,
    in_order,
    is_renumbered,
    padding_of,
    places_of,
    renumber,
    restore,
    tables_of,
)
from daedal.errors import UnsupportedOperation

CHUNK = 4096
"""Samples that are looked at together when batches are made."""


@dataclass(frozen=True)
class HotTable:
    """A table, whose first rows are hot.

    Attributes
    ----------
    names
        Paths of the modules that look up in it.
    rows, row_bytes
        Of the table.
    hot_rows
        How many rows are hot.
    lookups, hot_lookups
        Look-ups of the sample, those of padding left out, and those of them that read hot rows.
    """

    names: tuple[str, ...]
    rows: int
    row_bytes: int
    hot_rows: int
    lookups: int
    hot_lookups: int


class HotRows:
    """Tables whose hot rows are first.

    Attributes
    ----------
    tables
        Every table of the model, with its hot rows.
    """

    def __init__(self, model: nn.Module, tables: Sequence[HotTable]) -> None:
        self.tables = tuple(tables)
        self._model = model

    @property
    def hot_bytes(self) -> int:
        """Bytes of all hot rows."""
        return sum(table.hot_rows * table.row_bytes for table in self.tables)

    @property
    def share(self) -> float:
        """Share of the sample's look-ups that read hot rows; 1 of none."""
        lookups = sum(table.lookups for table in self.tables)
        return sum(table.hot_lookups for table in self.tables) / lookups if lookups else 1.0

    def is_hot(self, *inputs: Any, **named: Any) -> Tensor:
        """Of each sample of a batch, whether all its look-ups read hot rows: a bool tensor of the batch's length.

        The arguments are the model's inputs. Samples are the bags of an ``EmbeddingBag`` and the first dimension of
        what an ``Embedding`` looks up; a first dimension of 1 counts for all samples. Raises UnsupportedOperation if
        modules disagree about how many samples there are.
        """
        found = [(name, look_up.samples_with(cold)) for name, look_up, cold, _ in self._look_ups(Inputs(inputs, named))]
        samples = max((len(each) for _, each in found), default=0)
        cold = torch.zeros(samples, dtype=torch.bool)
        for name, each in found:
            if len(each) not in (1, samples):
                raise UnsupportedOperation(
                    f"all modules must look up for {samples} samples, not {name} for {len(each)}: a batch is split by "
                    "its samples"
                )
            cold |= each
        return ~cold

    def lookups(self, *inputs: Any, **named: Any) -> tuple[int, int]:
        """Of a batch with these inputs, the look-ups that read hot rows, and all that read a row."""
        found = [(int(cold.sum()), int(read.sum())) for _, _, cold, read in self._look_ups(Inputs(inputs, named))]
        return sum(read - cold for cold, read in found), sum(read for _, read in found)

    def batches(
        self,
        dataset: Any,
        batch_size: int,
        *,
        collate_fn: Callable[[list[Any]], Any] = default_collate,
        shuffle: bool = False,
        generator: torch.Generator | None = None,
    ) -> HotBatches:
        """Batches of ``dataset`` of hot samples only, and of the others: for ``DataLoader(batch_sampler=…)``.

        ``dataset`` has a length and samples by number, and is read once here. ``collate_fn`` makes the model's inputs
        of a list of samples: a tuple, a dictionary by parameter, or one tensor. ``shuffle`` and ``generator`` are those
        of a ``DataLoader``.
        """
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
            raise ValueError(f"batch_size must be a number from 1, not {shown(batch_size)}")
        found = [torch.zeros(0, dtype=torch.bool)]
        for start in range(0, len(dataset), CHUNK):
            samples = [dataset[number] for number in range(start, min(start + CHUNK, len(dataset)))]
            given = inputs_of(collate_fn(samples))
            hot = self.is_hot(*given.positional, **given.named)
            if len(hot) != len(samples):
                raise UnsupportedOperation(
                    f"collate_fn must make inputs of {len(samples)} samples, not of {len(hot)}: the model looks up for "
                    "so many"
                )
            found.append(hot)
        return HotBatches(torch.cat(found), batch_size, shuffle=shuffle, generator=generator)

    def _look_ups(self, inputs: Inputs) -> list[tuple[str, LookUp, Tensor, Tensor]]:
        """Each look-up of a run: the module's path, which indices read a row that is not hot, and which read one."""
        hot = {name: table.hot_rows for table in self.tables for name in table.names}
        found: list[tuple[str, LookUp, Tensor, Tensor]] = []

        def look(name: str, module: Table, look_up: LookUp) -> None:
            reads = ~_is_padding(module, look_up.indices)
            found.append((name, look_up, (places_of(module)[look_up.indices.long()] >= hot[name]) & reads, reads))

        look_ups(self._model, inputs, look)
        return found

    def follow(self, optimizer: torch.optim.Optimizer) -> None:
        """Let the state of ``optimizer`` go with the rows: its ``state_dict`` has the user's numbering from here on.

        State that it has is taken to be that of the rows before :func:`hot_rows`, and is reordered.
        """
        places = {id(module.weight): places_of(module) for module in tables_of(self._model).values()}
        for parameter, state in optimizer.state.items():
            if id(parameter) in places:
                state.update(in_order(state, places[id(parameter)].argsort()))
        parameters = [id(parameter) for group in optimizer.param_groups for parameter in group["params"]]
        numbering = OptimizerNumbering({n: places[each] for n, each in enumerate(parameters) if each in places})
        optimizer.register_state_dict_post_hook(numbering.save)
        optimizer.register_load_state_dict_pre_hook(numbering.load)

    def remove(self) -> None:
        """Give all tables their own numbering again."""
        for modules in _by_table(tables_of(self._model)):
            restore([module for _, module in modules])

    def explain(self) -> str:
        """A line for all tables, and one for each."""
        total = sum(table.rows * table.row_bytes for table in self.tables)
        lines = [f"{self.hot_bytes:,} of {total:,} bytes are hot: {self.share:.1%} of the sample's look-ups"]
        for table in self.tables:
            share = f"{table.hot_lookups / table.lookups:.1%}" if table.lookups else "–"
            lines.append(
                f"{', '.join(table.names)}: {table.hot_rows:,} of {table.rows:,} rows, {share} of {table.lookups:,} "
                "look-ups"
            )
        return "\n".join(lines)


def hot_rows(model: nn.Module, sample: Iterable[Any], *, bytes: int) -> HotRows:
    """Number the rows of ``model``'s tables anew, so that those that ``sample`` reads most are first.

    Every ``nn.Embedding`` and ``nn.EmbeddingBag`` takes part. Of all rows those with most look-ups per byte are hot, as
    many as ``bytes`` hold; rows that the sample does not read are not. The modules go on to take the user's row
    numbers, ``state_dict`` and ``load_state_dict`` keep them, and results have the bits that they had. So have
    gradients, but for dense ones of an ``EmbeddingBag``, which PyTorch adds in the order of sorted row numbers.

    Parameters
    ----------
    model
        The module; the rows of its tables change places. Call :meth:`HotRows.follow` for an optimizer that has state.
    sample
        Batches: each a tuple of the model's inputs, a dictionary by parameter, or one tensor. A tuple of tensors is one
        batch of inputs.
    bytes
        What all hot rows take at most.

    Raises ValueError for ``bytes`` that hold no row, UnsupportedOperation for a model without such modules, one that
    uses a table for something else too, one that is numbered so already, and a sample that is not its inputs.
    """
    if not isinstance(model, nn.Module):
        raise UnsupportedOperation(f"model must be a torch.nn.Module, not {type(model).__name__}")
    tables = tables_of(model)
    if not tables:
        raise UnsupportedOperation(
            f"model must have an nn.Embedding or nn.EmbeddingBag, which {type(model).__name__} has not"
        )
    if isinstance(bytes, bool) or not isinstance(bytes, int) or bytes < min(map(_row_bytes, tables.values())):
        least = min(map(_row_bytes, tables.values()))
        raise ValueError(f"bytes must be {least} or more, which a row takes, not {shown(bytes)}")
    for name, module in tables.items():
        if is_renumbered(module):
            raise UnsupportedOperation(f"{name} must have its own numbering: call remove() of its hot rows first")
    batches = [inputs_of(batch) for batch in ([sample] if _is_batch(sample) else sample)]
    if not batches:
        raise UnsupportedOperation("sample must have a batch of the model's inputs, not none")
    groups = _by_table(tables)
    counts = _count(model, groups, batches)
    chosen = _choose(counts, [_row_bytes(group[0][1]) for group in groups], bytes)
    expected = outputs(model, batches[0])
    made = []
    for group, count, hot in zip(groups, counts, chosen, strict=True):
        order = count.argsort(descending=True, stable=True)
        modules = [module for _, module in group]
        renumber(modules, order)
        reads = int(count.sum()), int(count[order[:hot]].sum())
        names = tuple(name for name, _ in group)
        made.append(HotTable(names, modules[0].num_embeddings, _row_bytes(modules[0]), hot, *reads))
    found = HotRows(model, made)
    if not same(expected, outputs(model, batches[0])):
        found.remove()
        raise UnsupportedOperation(
            "model must use its tables by their modules alone: with rows in another order its results differ, so it "
            "reads a weight itself, or its results are not the same in each run"
        )
    return found


def _is_batch(sample: object) -> bool:
    """Whether a sample is one batch rather than several."""
    return isinstance(sample, Tensor | dict) or (
        isinstance(sample, tuple) and any(isinstance(x, Tensor) for x in sample)
    )


def _by_table(tables: dict[str, Table]) -> list[list[tuple[str, Table]]]:
    """Path and module of those that share a table, table by table."""
    found: dict[int, list[tuple[str, Table]]] = {}
    for name, module in tables.items():
        found.setdefault(id(module.weight), []).append((name, module))
    return list(found.values())


def _row_bytes(module: Table) -> int:
    return module.embedding_dim * module.weight.element_size()


def _is_padding(module: Table, indices: Tensor) -> Tensor:
    """Which look-ups, by the user's numbers, read nothing."""
    padding = padding_of(module)
    return torch.zeros_like(indices, dtype=torch.bool) if padding is None else indices == padding


def _count(model: nn.Module, groups: list[list[tuple[str, Table]]], batches: Sequence[Inputs]) -> list[Tensor]:
    """How often each row of each table is read."""
    counts = [torch.zeros(group[0][1].num_embeddings, dtype=torch.int64) for group in groups]
    table_of = {name: number for number, group in enumerate(groups) for name, _ in group}

    def look(name: str, module: Table, look_up: LookUp) -> None:
        count, indices = counts[table_of[name]], look_up.indices.long()
        reads = ~_is_padding(module, indices) & (indices >= 0) & (indices < len(count))  # others are PyTorch's error
        count += indices[reads].bincount(minlength=len(count))

    for batch in batches:
        look_ups(model, batch, look)
    return counts


def _choose(counts: Sequence[Tensor], row_bytes: Sequence[int], most: int) -> list[int]:
    """How many rows of each table are hot: those with most look-ups per byte, of the first tables if equal."""
    worth = torch.cat([count.double() / size for count, size in zip(counts, row_bytes, strict=True)])
    sizes = torch.cat([torch.full_like(count, size) for count, size in zip(counts, row_bytes, strict=True)])
    table = torch.cat([torch.full_like(count, number) for number, count in enumerate(counts)])
    order = worth.argsort(descending=True, stable=True)
    order = order[(worth[order] > 0) & (sizes[order].cumsum(0) <= most)]
    return table[order].bincount(minlength=len(counts)).tolist()
