"""What a machine is to the driver, and those that there are."""
