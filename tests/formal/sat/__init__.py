"""Questions on netlists to a SAT solver."""
