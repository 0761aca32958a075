"""Pure. Findings in every output of `podqos check`."""
