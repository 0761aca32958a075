"""Pure. `podqos advise`."""
