"""Pure. Lines of the kernel, the kubelet and other killers, and what kubectl prints, become values."""
