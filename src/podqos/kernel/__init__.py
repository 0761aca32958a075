"""Pure. Linux as a model, knowing no pods: memory and memcg, the OOM killer, CPU bandwidth, pressure."""
