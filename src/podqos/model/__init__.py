"""Pure. Kubernetes values: quantities, resources, pods, nodes, policy objects, version profiles."""
