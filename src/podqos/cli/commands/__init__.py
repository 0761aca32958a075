"""Edge. One file per command."""
