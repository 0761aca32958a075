"""Edge. One task over many inputs: cores of this machine, or a cluster."""
