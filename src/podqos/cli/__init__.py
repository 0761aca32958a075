"""Edge. One file per command; opens files, shows progress, prints."""
