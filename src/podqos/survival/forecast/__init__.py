"""Pure. The race between kernel and kubelet while memory grows, for every phase of the kubelet's loop."""
