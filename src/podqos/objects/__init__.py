"""Pure. The input as values: the objects of files or of a cluster, and where each of them is."""
