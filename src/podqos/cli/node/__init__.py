"""Edge. Commands that talk to a running node."""
