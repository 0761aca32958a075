"""Edge. The inputs of a check: files, configuration, baseline."""
