"""Pure. The node agent both worlds run: what it hears, what it asks for, what it writes down."""
