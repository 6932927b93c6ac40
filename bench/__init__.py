"""For developers: size and clock of the units (``make synth``), and figures in pages (``python -m bench.pages``)."""
