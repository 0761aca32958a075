"""Pure. `podqos explain`."""
