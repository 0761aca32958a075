"""Pure. A file per question: the published value, the rule on top of the decisions, its words, its table."""
