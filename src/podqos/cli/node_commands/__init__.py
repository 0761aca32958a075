"""Edge. One file per command that talks to a running node, and one that makes it a service."""
