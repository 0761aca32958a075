"""Controllers of the control plane as pure rules: state in, decisions with reasons out."""
