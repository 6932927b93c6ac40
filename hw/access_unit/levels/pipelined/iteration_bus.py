"""What flows through a level before an activation's registers are needed: whose turn it is."""

from amaranth.lib import data, wiring
from amaranth.lib.wiring import Out
from amaranth.utils import ceil_log2

from daedal.hw.config.core import Config
from daedal.hw.interfaces import context_bits, context_entries

LEAST_ENTRIES = 16
"""A distributed RAM has no fewer; more than there are stages between an activation's start and its registers' use."""


def activation_entries(config: Config, level: int) -> int:
    """Activations that level ``level`` keeps."""
    return max(LEAST_ENTRIES, context_entries(config)) if config.contexts[level] else LEAST_ENTRIES


def bounds_layout(config: Config, level: int) -> data.StructLayout:
    """What the iterator needs of an activation: ``left`` is upper - lower, ``single`` that it makes one turn only,
    ``ends`` that it is the nest's last; the others as in ``IterationBus`` and ``ActivationBus``.
    """
    return data.StructLayout(
        {
            "entry": ceil_log2(activation_entries(config, level)),
            "work": 1,
            "single": 1,
            "ends": 1,
            "hint": 1,
            "context": context_bits(config),
            "lower": config.address_bits,
            "left": config.address_bits + 1,
            "starts": data.ArrayLayout(config.address_bits, config.sequential_loads[level]),
        }
    )


class IterationBus(wiring.Signature):
    """A bundle of the activation that ``ActivationStore`` keeps under ``entry``, without back-pressure.

    ``work``: an iteration. ``first``, ``last``, ``final``: the first, the last bundle of the activation, the last of
    the nest. ``hint``: no bundle at all, but where arrays begin (``Activation``). ``context`` as in a bundle;
    ``induction``: the induction variable.
    """

    def __init__(self, config: Config, level: int) -> None:
        super().__init__(
            {
                "valid": Out(1),
                "entry": Out(ceil_log2(activation_entries(config, level))),
                **{name: Out(1) for name in ("work", "first", "last", "final", "hint")},
                "context": Out(context_bits(config)),
                "induction": Out(config.address_bits),
            }
        )


TURN_FIELDS = ("entry", "work", "first", "last", "final", "hint", "context", "induction")
"""What a ``IterationBus`` carries beside ``valid``."""
