"""Pure. What the views of ``podqos ui`` show, as values: one module per view. The viewer's types follow their schemas."""
