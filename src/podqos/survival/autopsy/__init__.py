"""Pure. Why processes were killed and pods evicted, by what is left of it."""
