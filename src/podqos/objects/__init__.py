"""Pure. What was given, as values: the objects of files or of a cluster, and where each of them stands."""
