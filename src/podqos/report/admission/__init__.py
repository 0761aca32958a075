"""Pure. `podqos admit`."""
