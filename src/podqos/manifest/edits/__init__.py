"""Pure. Manifests edited where they are: the pieces of text to change, and when a text is left as it is."""
