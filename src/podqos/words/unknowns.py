"""What an answer lacks, in plain words: what is assumed instead, and where to get it."""

from __future__ import annotations

from podqos.model.assumption import Assumption

_TEXTS = {
    "usage": "Memory usage is not known; assumed: {value}.",
    "kubelet settings": "The kubelet's settings are not known; assumed: {value}.",
    "node memory": "The memory of the node is not known; assumed: {value}.",
    "where pods run": "Where the pods run is not known; assumed: {value}.",
}
_FROM_FILES = {
    "usage": "Open a usage table together with the files: kubectl top pods -A --containers > usage.txt",
    "kubelet settings": "Open the kubelet's settings together with the files: "
    "kubectl get --raw /api/v1/nodes/NODE/proxy/configz > kubelet.json",
    "node memory": "Open the Node together with the files: kubectl get node NODE -o yaml > node.yaml",
    "where pods run": "Open a snapshot of the cluster instead: podqos snapshot > cluster.json",
}
_FROM_CLUSTER = {
    "usage": "It is read from the kubelets (permission: get nodes/proxy) or from metrics-server.",
    "kubelet settings": "They are read from the kubelet's configz (permission: get nodes/proxy).",
}


def unknown_usage(pod: str) -> str:
    """Return why no request or limit can be computed for a pod."""
    return f"What {pod} uses is not known, so no request or limit can be computed for it."


def how_to_know_usage(*, is_cluster: bool) -> str:
    """Return where to get the usage of pods."""
    return (_FROM_CLUSTER if is_cluster else _FROM_FILES)["usage"]


def unknown_text(assumption: Assumption) -> str:
    """Return what is not known and what is assumed; empty for what hardly matters to who dies first."""
    what, _, pods = assumption.what.partition(" of ")
    if what == "usage" and pods:
        return f"Memory usage of {pods} is not known; assumed: {assumption.value}."
    return _TEXTS.get(assumption.what, "").format(value=assumption.value)


def how_to_know(assumption: Assumption, *, is_cluster: bool) -> str:
    """Return where to get it: for files what to open with them, for a cluster what it is read from."""
    what = assumption.what.partition(" of ")[0]
    return (_FROM_CLUSTER if is_cluster else _FROM_FILES).get(what, "")
