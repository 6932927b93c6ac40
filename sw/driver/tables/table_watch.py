"""Tables of the same tensors in launch after launch, looked at all together."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from daedal.base.handle import Handle
from daedal.driver.tables.digests import SameContents, address_of
from daedal.driver.tables.table_sources import Origin, Source, is_tensor, optimizer_steps, same_memory
from daedal.driver.tables.tensor_forms import TensorForms

_VERSION, _NUMBER = attrgetter("_version"), attrgetter("_cdata")


class Watch(Handle):
    """Tensors that were made resident, and all of what tells that they are as they were then.

    One list of each kind of thing is compared, which takes a fifth of the time of one tensor after the other.
    """

    def __init__(self, names: Sequence[str], sources: Sequence[Any], origins: Sequence[Origin], changes: int) -> None:
        self.names, self.changes = names, changes
        self._sources = list(sources)
        """The tensors themselves, so that their memory stays theirs."""
        self._pointers = [origin.place[0] for origin in origins]
        self._each = list({id(source): source for source in self._sources}.values())
        self._forms = TensorForms(self._each, has_sizes=True)
        looked_at = [origin for origin in origins if origin.is_looked_at]
        digested = {origin.region: origin.digest for origin in looked_at if origin.digest is not None}
        self._digested = SameContents(list(digested), digested.values()) if digested else None
        copied = [(origin.content, *origin.region) for origin in looked_at if origin.content is not None]
        both = [(address_of(content), address, size) for content, address, size in copied]
        self._compared: tuple[Sequence[int], ...] = tuple(zip(*both, strict=True)) if both else ((), (), ())
        self._counted = [source for source, origin in zip(sources, origins, strict=True) if not origin.is_looked_at]
        self._counts = self._count()

    @staticmethod
    def can_be_of(sources: Sequence[Source], origins: Sequence[Origin]) -> bool:
        """Whether these sources, of which these tables came, can be looked at together."""
        return all(
            is_tensor(source) and not source.is_neg() and not source.is_conj() and origin.is_in_order
            for source, origin in zip(sources, origins, strict=True)
        )

    def is_of(self, sources: Sequence[Source]) -> bool:
        """Whether it is of these very tensors."""
        return len(sources) == len(self._sources) and all(a is b for a, b in zip(sources, self._sources, strict=True))

    def are_as_before(self) -> bool:
        """Whether the tensors lie where they did, and have the content that was uploaded."""
        import torch

        try:
            pointers = list(map(torch.Tensor.data_ptr, self._sources))
        except RuntimeError:  # of a tensor that has no memory any more
            return False
        return (
            pointers == self._pointers
            and self._forms.are_of(self._each)
            and (self._digested is None or self._digested.are_as_before())
            and not any(map(same_memory, *self._compared))
            and (not self._counted or self._count() == self._counts)
        )

    def _count(self) -> list[list[Any]]:
        """What is counted of the changes of tensors whose contents are not looked at, and whose memory it is."""
        if not self._counted:
            return []
        numbers = [_NUMBER(source.untyped_storage()) for source in self._counted]
        return [numbers, list(map(_VERSION, self._counted)), list(map(optimizer_steps().get, numbers))]
