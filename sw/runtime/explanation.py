"""What an executable says of a model: what runs on the device, in how many launches, what stays, and why."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from daedal.runtime.kernel import Kernel

SUMMARY_LINES = 10
"""The longest summary."""

_NAMED = 3
"""How many operations a line of a summary names."""


@dataclass(frozen=True)
class Explanation:
    """What there is to be said of the last call of a model, or of its compilation.

    Attributes
    ----------
    labels
        Operations on the device by their names in the graph: what they are called in messages.
    launches
        The operations of each launch.
    reasons
        Operations that stay in the framework, as they are called in messages, and why.
    remarks, kernels
        Of operations on the device, by their names in the graph.
    eager
        Where the framework runs operations one by one, and why.
    others
        What the graph calls, to be named if nothing of it is an operation that the device could do.
    framework
        Who does the rest.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    launches: Sequence[Sequence[str]] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    remarks: Mapping[str, str] = field(default_factory=dict)
    kernels: Mapping[str, Kernel] = field(default_factory=dict)
    eager: Mapping[str, str] = field(default_factory=dict)
    others: Sequence[str] = ()
    framework: str = "PyTorch"

    @property
    def summary(self) -> list[str]:
        """At most ``SUMMARY_LINES`` lines."""
        count = len(self.labels) + len(self.reasons)
        if not count:
            what = f"it has {_named(self.others)}" if self.others else "it has no operations"
            does = f"nothing to offload: {self.framework} does it all"
            return [f"{does}; no operation looks up, gathers or reduces rows: {what}"]
        head = f"device: {len(self.labels)} of {_counted(count, 'operation')}"
        if self.launches:
            head += f", in {_counted(len(self.launches), 'launch', 'launches')}"
        lines = [head]
        room = SUMMARY_LINES - 1
        by_reason: dict[str, list[str]] = {}
        for label, reason in self.reasons.items():
            by_reason.setdefault(reason, []).append(label)
        launches = self.launches if len(self.launches) > 1 and any(len(each) > 1 for each in self.launches) else ()
        shown = min(len(by_reason), room // 2 if launches else room)
        lines += _listed(
            [
                f"launch {n}: {_named([self.labels.get(name, name) for name in each])}"
                for n, each in enumerate(launches, 1)
            ],
            room - shown,
            "launches",
        )
        stays = [f"{self.framework}: {_named(labels)}: {reason}" for reason, labels in by_reason.items()]
        return lines + _listed(stays, SUMMARY_LINES - len(lines), "reasons")

    def text(self, *, passes: bool) -> str:
        """The summary, and a line for each operation; with ``passes``, what each pass did for each program as well."""
        lines = self.summary
        for name, label in self.labels.items():
            line = f"{label}: on the device" + (f"; {self.remarks[name]}" if name in self.remarks else "")
            kernel = self.kernels.get(name)
            lines.append(line if kernel is None else f"{line}; optimisation level {kernel.optimisation}")
        lines += [f"{label}: in {self.framework}, because {reason}" for label, reason in self.reasons.items()]
        lines += [
            f"{name} and what follows: not compiled by {self.framework}, because {why}"
            for name, why in self.eager.items()
        ]
        programs = {id(kernel): (name, kernel) for name, kernel in reversed(list(self.kernels.items()))}
        for name, kernel in reversed(programs.values()):
            lines += [f"{self.labels.get(name, name)}: {line}" for line in kernel.account(passes=passes)]
        return "\n".join(lines)


def _counted(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def _named(names: Iterable[str]) -> str:
    """The first few of these, and how many there are besides."""
    found = list(names)
    shown = found if len(found) <= _NAMED + 1 else found[:_NAMED]
    return ", ".join(shown) + (f" and {len(found) - len(shown)} more" if len(shown) < len(found) else "")


def _listed(lines: Sequence[str], room: int, what: str) -> list[str]:
    """These lines, as far as there is room."""
    if len(lines) <= room:
        return list(lines)
    return [*lines[: room - 1], f"and {len(lines) - room + 1} more {what}, below"]
