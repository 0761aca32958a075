"""What to give to ``podqos autopsy``, for people who call it with nothing."""

from __future__ import annotations

GUIDE = """\
podqos autopsy explains OOM kills and evictions from whatever you have:

  from the cluster, read only      podqos autopsy -n NAMESPACE POD
                                   podqos autopsy -A
  kubectl's output                 kubectl get pods,nodes,events -A -o json | podqos autopsy -
                                   kubectl describe pod -n NAMESPACE POD | podqos autopsy -
  this machine's kernel log        sudo dmesg | podqos autopsy -
                                   journalctl -k --since=-2h -o short-iso | podqos autopsy -
  a file                           podqos autopsy kern.log pods.yaml
  the clipboard                    podqos autopsy -        paste, then Ctrl-D

A kernel log says what ran out of memory and why that process was killed. Pods, nodes and events
add names, limits and evictions. Give both if you can.
"""
