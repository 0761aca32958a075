"""Pure. What a pod is promised: class, oom score, CPU units, cgroup plan, run flags."""
