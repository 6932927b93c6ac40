"""What others say of embedding operations on GPUs: figures with their sources."""

from dataclasses import dataclass
from typing import Any

from daedal.bench.explore.energy import BITS, DRAM


@dataclass(frozen=True)
class Figure:
    """A published figure; None for what its source does not say.

    Attributes
    ----------
    engine, on
        The program and the processor.
    what
        The operation.
    source
        Where it stands.
    least, most
        Share of the memory's bandwidth; equal if there is one figure.
    lookups_per_s, bytes_per_s
        Rows that are looked up, and their bytes.
    """

    engine: str
    on: str
    what: str
    source: str
    least: float | None = None
    most: float | None = None
    lookups_per_s: float | None = None
    bytes_per_s: float | None = None

    def as_row(self) -> dict[str, Any]:
        """It, as a row of the suite. The energy, which none of them says, is that of the memory alone, as of HBM2."""
        is_range = self.least is not None and self.least != self.most
        said = f"{self.least:.2%} to {self.most:.0%} of it; " if is_range else ""
        bit = DRAM["hbm2e"]
        return {
            "engine": self.engine, "on": self.on, "lookups_per_s": self.lookups_per_s,
            "bytes_per_s": self.bytes_per_s, "share": self.most, "of": "" if self.most is None else "HBM bandwidth",
            "nj_least": self._nj(bit.least), "nj_most": self._nj(bit.most),
            "note": f"{self.what}; {said}{self.source}",
        }  # fmt: skip

    def _nj(self, bit: float) -> float | None:
        """Of a look-up, if a bit takes so many pJ."""
        if self.bytes_per_s is None or self.lookups_per_s is None:
            return None
        return self.bytes_per_s / self.lookups_per_s * BITS * bit / 1000


FBGEMM_ROWS, FBGEMM_SECONDS = 65_536 * 2 * 32, 5.225e-3

PUBLISHED = (
    Figure(
        "embedding operations", "NVIDIA H100", "operations of recommenders, graphs and attention, one after the other",
        "a review of Ember (arXiv 2504.09870), second hand: the paper's own table was not at hand", 0.0008, 0.52,
    ),
    Figure(
        "models of recommenders, graphs and texts", "GPUs", "whole models, beside processors with access units",
        "Ember, arXiv 2504.09870, abstract: those take 1/2.6 of the time and 1/6.4 of the energy; no share there",
    ),
    Figure(
        "FBGEMM, table batched", "an AMD GPU", "2 tables of 10 M rows × 192 binary32, 65,536 bags of 32, uniform",
        "pull request 1325 of pytorch/FBGEMM: 5.225 ms, 621 GB/s; the GPU's model is not said",
        lookups_per_s=FBGEMM_ROWS / FBGEMM_SECONDS, bytes_per_s=621.27e9,
    ),
    Figure(
        "PyTorch, prefetched and pinned in L2", "NVIDIA A100", "bags of DLRM inference",
        "R. Jain et al., arXiv 2410.22249: up to 2.03 times PyTorch's own kernel; no share in its abstract",
    ),
)  # fmt: skip
"""Those of GPUs."""
