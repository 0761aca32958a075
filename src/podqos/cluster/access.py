"""Edge: finds the cluster: from this user's kubeconfig files, or the service account of the pod this runs in."""

from __future__ import annotations

import os
from collections.abc import Mapping

from podqos.cluster.kubeconfig import Access, Kubeconfig, User, merge
from podqos.errors import InputError
from podqos.naming import hint, naming

_SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def find_access(
    context: str | None = None,
    *,
    kubeconfig: str | None = None,
    environment: Mapping[str, str] = os.environ,
    service_account: str = _SERVICE_ACCOUNT,
) -> Access:
    """Return how to reach the cluster: that of a context, else of the current context, else of the pod this runs in.

    ``kubeconfig`` names one file, instead of those in KUBECONFIG.
    """
    config = read_kubeconfig(kubeconfig, environment)
    if config.contexts or context or config.current_context:
        return config.access(context)
    inside = _in_cluster(environment, service_account)
    if inside is not None:
        return inside
    if config.sources:
        return config.access()
    looked = environment.get("KUBECONFIG") or "~/.kube/config"
    raise InputError(
        "no kubeconfig found", where=looked, fix="set KUBECONFIG" + hint(", or give files with " + naming("files"))
    )


def read_kubeconfig(kubeconfig: str | None = None, environment: Mapping[str, str] = os.environ) -> Kubeconfig:
    """Return all kubeconfig files merged. Files that KUBECONFIG lists need not exist, a named one must."""
    if kubeconfig is not None:
        return merge([(kubeconfig, _contents(kubeconfig))])
    listed = environment.get("KUBECONFIG", "")
    home = environment.get("HOME") or os.path.expanduser("~")
    paths = [path for path in listed.split(os.pathsep) if path] or [os.path.join(home, ".kube", "config")]
    return merge((path, _contents(path)) for path in dict.fromkeys(paths) if os.path.exists(path))


def _contents(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(_MOST_BYTES)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=path, fix="give a kubeconfig file") from None


_MOST_BYTES = 64 << 20


def _in_cluster(environment: Mapping[str, str], directory: str) -> Access | None:
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    token = os.path.join(directory, "token")
    if not host or not port or not os.path.exists(token):
        return None
    try:
        with open(os.path.join(directory, "namespace"), encoding="utf-8") as file:
            namespace = file.read().strip()
    except (OSError, UnicodeDecodeError):
        namespace = ""
    address = f"[{host}]" if ":" in host else host
    authority = os.path.join(directory, "ca.crt")
    return Access(
        server=f"https://{address}:{port}",
        namespace=namespace or "default",
        ca_file=authority if os.path.exists(authority) else "",
        user=User(token_file=token),
    )
