"""For developers: size and clock of the units (``make synth``), and landed results (``python -m bench.results``)."""
