"""Pure. `podqos place`."""
