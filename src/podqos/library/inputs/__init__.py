"""Edge. From files to values."""
