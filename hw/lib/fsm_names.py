"""Names of a state machine's states, for waveforms."""

from typing import Any


def name_states(fsm: Any, kind: str) -> None:
    """Give the state register of ``fsm`` (what ``m.FSM()`` gives, once its states are defined) their names.

    They become attributes in Verilog, as Amaranth writes them itself for signals whose shape is an enumeration;
    ``kind`` is that enumeration's name.
    """
    register = fsm.state
    register.attrs["enum_base_type"] = kind
    for value, name in fsm.decoding.items():
        register.attrs[f"enum_value_{value:0{len(register)}b}"] = name
