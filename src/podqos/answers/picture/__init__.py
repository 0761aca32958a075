"""Pure. Lays out the picture of a node's run: ``layout.py`` puts it together from a file per kind of panel."""
