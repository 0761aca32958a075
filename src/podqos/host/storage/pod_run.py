"""The run specification of a pod: fields of a manifest that no decision reads and every runtime needs.

They are separate from ``model.pod`` because decisions are made for hundreds of thousands of pods, while a node runs a
hundred. Environment variables may refer to each other and to fields of the pod; both are resolved here when the pod
starts.

Source: Kubernetes v1.36 staging/src/k8s.io/api/core/v1/types.go; third_party/forked/golang/expansion (``$(NAME)``);
pkg/fieldpath, pkg/api/v1/resource (valueFrom).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from podqos.errors import HostError
from podqos.manifest.decode import convert
from podqos.manifest.plain import Plain
from podqos.model.pod import Lifecycle, Pod
from podqos.model.quantity import ZERO, Quantity

_LONGEST_BYTES = (128 << 10) - 1  # MAX_ARG_STRLEN of linux/binfmts.h, with the NUL at its end
# Of a user or group, as the API allows.
Id = Annotated[int, Meta(ge=0, le=(1 << 31) - 1)]
_IGNORED = {
    "app_armor_profile": "appArmorProfile",
    "fs_group_change_policy": "fsGroupChangePolicy",
    "proc_mount": "procMount",
    "se_linux_options": "seLinuxOptions",
    "seccomp_profile": "seccompProfile",
    "supplemental_groups_policy": "supplementalGroupsPolicy",
    "sysctls": "sysctls",
}
Other = Mapping[str, Any] | Sequence[Any] | str | None
_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")
_LABEL = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


class FieldRef(Struct, frozen=True, rename="camel"):
    """A field of the pod itself."""

    field_path: str = ""


class ResourceFieldRef(Struct, frozen=True, rename="camel"):
    """An amount of a container of the pod."""

    resource: str = ""
    container_name: str = ""
    divisor: Quantity | None = None


class ValueFrom(Struct, frozen=True, rename="camel"):
    """Where a value comes from."""

    field_ref: FieldRef | None = None
    resource_field_ref: ResourceFieldRef | None = None


class EnvVar(Struct, frozen=True, rename="camel"):
    """An environment variable."""

    name: str = ""
    value: str = ""
    value_from: ValueFrom | None = None


class VolumeMount(Struct, frozen=True, rename="camel"):
    """A volume mounted into a container."""

    name: str = ""
    mount_path: str = ""
    read_only: bool = False
    sub_path: str = ""
    sub_path_expr: str = ""
    # Ignored, and said so.
    mount_propagation: str = ""


class ExecAction(Struct, frozen=True):
    """A command whose exit code is the result."""

    command: tuple[str, ...] = ()


class HTTPHeader(Struct, frozen=True):
    """A header to send."""

    name: str = ""
    value: str = ""


class HTTPGetAction(Struct, frozen=True, rename="camel"):
    """A request; any status from 200 to 399 is a success."""

    port: int | str = 0
    path: str = "/"
    host: str = ""
    scheme: str = "HTTP"
    http_headers: tuple[HTTPHeader, ...] = ()


class TCPSocketAction(Struct, frozen=True):
    """A connection; success if it is accepted."""

    port: int | str = 0
    host: str = ""


class Probe(Struct, frozen=True, rename="camel"):
    """A probe, with the API's defaults."""

    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    tcp_socket: TCPSocketAction | None = None
    initial_delay_seconds: int = 0
    period_seconds: int = 10
    timeout_seconds: int = 1
    success_threshold: int = 1
    failure_threshold: int = 3
    termination_grace_period_seconds: int | None = None

    @property
    def can_be_asked(self) -> bool:
        """Whether this node can ask it: a gRPC probe is ignored, and said so."""
        return self.exec is not None or self.http_get is not None or self.tcp_socket is not None


class Port(Struct, frozen=True, rename="camel"):
    """A named port for probes."""

    name: str = ""
    container_port: int = 0


class Capabilities(Struct, frozen=True):
    """Capabilities to add and to drop."""

    add: tuple[str, ...] | None = None
    drop: tuple[str, ...] | None = None


class SecurityContext(Struct, frozen=True, rename="camel"):
    """The security context of a container; what is not written is the pod's or the image's."""

    run_as_user: Id | None = None
    run_as_group: Id | None = None
    run_as_non_root: bool | None = None
    capabilities: Capabilities | None = None
    privileged: bool | None = None
    read_only_root_filesystem: bool | None = None
    allow_privilege_escalation: bool | None = None
    # Ignored, and said so (``_IGNORED``).
    app_armor_profile: Other = None
    proc_mount: Other = None
    se_linux_options: Other = None
    seccomp_profile: Other = None


class PodSecurityContext(Struct, frozen=True, rename="camel"):
    """The security context of all containers of a pod."""

    run_as_user: Id | None = None
    run_as_group: Id | None = None
    run_as_non_root: bool | None = None
    supplemental_groups: tuple[Id, ...] | None = None
    fs_group: Id | None = None
    # Ignored, and said so (``_IGNORED``).
    app_armor_profile: Other = None
    fs_group_change_policy: Other = None
    se_linux_options: Other = None
    seccomp_profile: Other = None
    supplemental_groups_policy: Other = None
    sysctls: Other = None


class ContainerRunSpec(Struct, frozen=True, rename="camel"):
    """The run specification of a container."""

    name: str = ""
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: tuple[EnvVar, ...] = ()
    working_dir: str = ""
    volume_mounts: tuple[VolumeMount, ...] = ()
    ports: tuple[Port, ...] = ()
    startup_probe: Probe | None = None
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    security_context: SecurityContext | None = None
    lifecycle: Lifecycle | None = None
    # Ignored, and said so.
    env_from: Other = None
    volume_devices: Other = None


class HostPath(Struct, frozen=True):
    """A file or directory of the machine."""

    path: str = ""
    type: str = ""


class EmptyDirVolume(Struct, frozen=True, rename="camel"):
    """A directory private to the pod."""

    medium: str = ""
    size_limit: Quantity | None = None


class RunVolume(Struct, frozen=True, rename="camel"):
    """A volume that needs no API server."""

    name: str = ""
    host_path: HostPath | None = None
    empty_dir: EmptyDirVolume | None = None


class PodRun(Struct, frozen=True, rename="camel"):
    """The run specification of a pod."""

    containers: tuple[ContainerRunSpec, ...] = ()
    init_containers: tuple[ContainerRunSpec, ...] = ()
    ephemeral_containers: tuple[ContainerRunSpec, ...] = ()
    volumes: tuple[RunVolume, ...] = ()
    hostname: str = ""
    security_context: PodSecurityContext | None = None

    def container(self, name: str) -> ContainerRunSpec:
        """Return the run specification of a container."""
        every = (*self.containers, *self.init_containers, *self.ephemeral_containers)
        return next((spec for spec in every if spec.name == name), ContainerRunSpec(name))


def pod_run(spec: Plain) -> PodRun:
    """Read the ``spec`` of a pod; raises ``msgspec.ValidationError``. Null is absent."""
    present = _present(spec)
    volumes = present.get("volumes") if isinstance(present, dict) else None
    for volume in volumes if isinstance(volumes, list) else ():
        if isinstance(volume, dict) and volume.keys() <= {"name"}:
            volume["emptyDir"] = {}  # the API server's default
    return convert(present, PodRun)


def _present(value: Plain) -> Plain:
    if isinstance(value, dict):
        return {name: _present(item) for name, item in value.items() if item is not None}
    return [_present(item) for item in value] if isinstance(value, list) else value


def unsupported(run: PodRun) -> list[str]:
    """Return what this node cannot provide without an API server, one line each."""
    lines = [
        f"volume {volume.name}: only emptyDir and hostPath are available without an API server"
        for volume in run.volumes
        if volume.host_path is None and volume.empty_dir is None
    ]
    lines += [f"{line} is ignored" for line in _ignored(run.security_context)]
    for container in (*run.containers, *run.init_containers):
        ignored = (*_ignored(container.security_context), *_hooks(container.lifecycle), *_fields(container))
        lines += [f"container {container.name}: {line} is ignored" for line in ignored]
        lines += [
            f"container {container.name}: env {variable.name}: only fieldRef and resourceFieldRef are supported"
            for variable in container.env
            if variable.value_from is not None
            and variable.value_from.field_ref is None
            and variable.value_from.resource_field_ref is None
        ]
    return lines


def without_nul(text: str) -> str:
    """Return a text that can be given to the kernel; raises ``HostError`` for one that the kernel would cut short."""
    if "\0" in text:
        raise HostError(f"{text!r} contains a NUL character")
    return text


def sub_path(mount: VolumeMount, known: Mapping[str, str]) -> str:
    """Return the part of its volume that is mounted; raises ``HostError`` for a variable that does not exist."""
    for name in _REFERENCE.findall(mount.sub_path_expr):
        if name and name not in known:
            raise HostError(f"subPathExpr {mount.sub_path_expr}: there is no variable {name}")
    return mount.sub_path or expand(mount.sub_path_expr, known, "subPathExpr")


def below(volume: str, sub_path: str) -> str:
    """Return the part of a volume to mount, created if needed; raises ``HostError`` if links lead out of the volume.

    The path returned has no links left in it, as in the kubelet (pkg/volume/util/subpath).
    """
    if not sub_path:
        return volume
    root = Path(volume).resolve()
    found = (root / sub_path).resolve()
    if not found.is_relative_to(root):
        raise HostError(f"subPath {sub_path} leads out of its volume")
    if not found.exists():
        found.mkdir(0o750, parents=True, exist_ok=True)
    return str(found)


def _fields(container: ContainerRunSpec) -> Iterator[str]:
    """Yield the fields of a container that are not carried out."""
    if container.env_from:
        yield "envFrom"
    if container.volume_devices:
        yield "volumeDevices"
    for mount in container.volume_mounts:
        if mount.mount_propagation not in {"", "None"}:
            yield f"mountPropagation of {mount.name}"
    probes = (
        ("startupProbe", container.startup_probe),
        ("livenessProbe", container.liveness_probe),
        ("readinessProbe", container.readiness_probe),
    )
    for name, probe in probes:
        if probe is not None and not probe.can_be_asked:
            yield f"{name} without exec, httpGet or tcpSocket"


def _hooks(lifecycle: Lifecycle | None) -> list[str]:
    """Return the hooks that are not run: of those before the end, all but ``sleep``."""
    if lifecycle is None:
        return []
    hooks = [] if lifecycle.post_start is None else ["lifecycle.postStart"]
    pre_stop = lifecycle.pre_stop
    return hooks if pre_stop is None or pre_stop.sleep is not None else [*hooks, "lifecycle.preStop"]


def _ignored(context: SecurityContext | PodSecurityContext | None) -> list[str]:
    """Return the fields of a security context that no runtime is told."""
    return [f"securityContext.{name}" for field, name in _IGNORED.items() if getattr(context, field, None)]


def environment(pod: Pod, container: ContainerRunSpec, node: str) -> dict[str, str]:
    """Return the variables of a container, in order: each may refer to those before it. Raises ``HostError``."""
    known: dict[str, str] = {}
    for variable in container.env:
        if variable.value_from is not None:
            known[variable.name] = _resolved(pod, container, variable.value_from, node)
        else:
            known[variable.name] = expand(variable.value, known, f"env {variable.name}")
    return known


def expand(text: str, known: Mapping[str, str], what: str = "an argument") -> str:
    """Replace ``$(NAME)``; unknown names are kept, and ``$$`` is a dollar sign. Raises ``HostError``.

    What is longer than a program can be given is not built: variables that refer to each other grow exponentially.
    """
    size = len(text)

    def replacement(match: re.Match[str]) -> str:
        nonlocal size
        name = match[1]
        new = "$" if name is None else known.get(name, match[0])
        size += len(new) - len(match[0])
        _check_size(size, what)
        return new

    _check_size(size, what)
    expanded = without_nul(_REFERENCE.sub(replacement, text))
    _check_size(len(expanded.encode(errors="surrogatepass")), what)
    return expanded


def _check_size(size: int, what: str) -> None:
    if size > _LONGEST_BYTES:
        raise HostError(f"{what}: argument list too long: {size} bytes, Linux allows {_LONGEST_BYTES}")


def _resolved(pod: Pod, container: ContainerRunSpec, source: ValueFrom, node: str) -> str:
    if source.field_ref is not None:
        return _field(pod, source.field_ref.field_path, node)
    if source.resource_field_ref is not None:
        return _amount(pod, container, source.resource_field_ref)
    return ""


def _field(pod: Pod, path: str, node: str) -> str:
    metadata = pod.metadata
    labelled = _LABEL.fullmatch(path)
    if labelled is not None:
        kept = metadata.labels if labelled[1] == "labels" else metadata.annotations
        return kept.get(labelled[2], "")
    return {
        "metadata.name": metadata.name,
        "metadata.namespace": metadata.namespace,
        "metadata.uid": metadata.uid,
        "spec.nodeName": node,
        "status.hostIP": "127.0.0.1",
        "status.podIP": "127.0.0.1",
    }.get(path, "")


def _amount(pod: Pod, container: ContainerRunSpec, wanted: ResourceFieldRef) -> str:
    """Return an amount in units of the divisor, rounded up."""
    name = wanted.container_name or container.name
    every = (*pod.spec.containers, *pod.spec.init_containers)
    found = next((container for container in every if container.name == name), None)
    if found is None:
        return ""
    kind, _, resource = wanted.resource.partition(".")
    amounts = found.resources.limits if kind == "limits" else found.resources.requests
    amount = amounts.get(resource, ZERO)
    divisor = wanted.divisor or Quantity.of_units(1)
    return str(-(-amount.nanos // divisor.nanos))
