"""Pure. What a node holds: its pods and what they use, as kubelet and kernel see them."""
