"""The machine's parameters: one frozen, validated ``Config``, its presets, and configurations from files."""
