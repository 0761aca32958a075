"""Pure. What all answers share: colours, columns and CSV, and what several of them say in the same words."""
