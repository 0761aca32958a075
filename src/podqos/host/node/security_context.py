"""The security context of a container: its own, and the pod's where it says nothing.

Source: Kubernetes v1.36 pkg/securitycontext/util.go (DetermineEffectiveSecurityContext, AddNoNewPrivileges),
pkg/kubelet/kuberuntime/security_context.go (groups).
"""

from __future__ import annotations

from podqos.host.runtimes.runtime import Security
from podqos.host.storage.pod_run import Capabilities, PodRun, PodSecurityContext, SecurityContext


def security_of(run: PodRun, name: str) -> Security:
    """Return what holds for a container of a pod."""
    pod = run.security_context or PodSecurityContext()
    own = run.container(name).security_context or SecurityContext()
    capabilities = own.capabilities or Capabilities()
    groups = (*(() if pod.fs_group is None else (pod.fs_group,)), *(pod.supplemental_groups or ()))
    return Security(
        run_as_user=pod.run_as_user if own.run_as_user is None else own.run_as_user,
        run_as_group=pod.run_as_group if own.run_as_group is None else own.run_as_group,
        groups=groups,
        run_as_non_root=bool(pod.run_as_non_root if own.run_as_non_root is None else own.run_as_non_root),
        add=capabilities.add or (),
        drop=capabilities.drop or (),
        read_only_root=bool(own.read_only_root_filesystem),
        no_new_privileges=own.allow_privilege_escalation is False,
        privileged=bool(own.privileged),
    )
