"""Pure. The rules by which Kubernetes' controllers create, replace, delete and scale pods."""
