"""Pure. `podqos rank`, `thresholds`, `cpu`, `forecast`, `drift`."""
