"""Edge. Commands about a guard, one file each."""
