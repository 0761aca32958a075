"""Pure. Runs: timeline, page, picture; sweeps, blast radius, rehearsals."""
