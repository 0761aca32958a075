"""Pure. What the views of ``podqos ui`` show, as values, one module each. The viewer's types follow their schemas."""
