"""Parts of LiteDRAM's modules, which boards change before they become Verilog; of one release, all else is an error."""

from typing import Any

from litedram.core.bankmachine import BankMachine

from daedal.errors import InvalidConfig


def bank_machines(controller: Any) -> list[Any]:
    """Those of a LiteDRAMController, in their order."""
    return [part for _, part in controller._submodules if isinstance(part, BankMachine)]


def only_part(module: Any, kind: type) -> Any:
    """The module's only part of a kind. Raises InvalidConfig."""
    found = [part for _, part in module._submodules if isinstance(part, kind)]
    if len(found) != 1:
        raise unknown(module, f"it has {len(found)} parts of type {kind.__name__}")
    return found[0]


def unknown(module: Any, what: str) -> InvalidConfig:
    """The error for a module that is not as expected."""
    return InvalidConfig(
        f"LiteDRAM's {type(module).__name__} is not that of the release which Daedal needs: {what}; "
        "install daedal again, which brings that litedram"
    )
