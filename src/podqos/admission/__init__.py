"""Pure. Before a pod exists: defaulting, validation, policy objects, the chain of the API server."""
