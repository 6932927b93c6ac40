"""Training: tables that optimizers update on a device."""
