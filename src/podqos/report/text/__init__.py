"""Pure. What all reports share: words, columns, colours."""
