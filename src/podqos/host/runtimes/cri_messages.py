"""The messages of the Container Runtime Interface that this node uses, described in code.

Kubernetes publishes the interface as a .proto file of a hundred messages. This is the part needed here: names, numbers
and types of fields. The decoder skips unknown fields. Enumerations are listed as the ``int32`` they are on the wire.

Outside of this module messages are plain data: ``encode`` takes a mapping, ``decode`` returns one.

Source: Kubernetes v1.36 staging/src/k8s.io/cri-api/pkg/apis/runtime/v1/api.proto.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Protocol, cast

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

PACKAGE = "runtime.v1"
_MAP = "map<string, string>"
_REPEATED = "repeated "

# Message → field → (number, type).
MESSAGES: Mapping[str, Mapping[str, tuple[int, str]]] = {
    "VersionRequest": {"version": (1, "string")},
    "VersionResponse": {"runtime_name": (2, "string"), "runtime_version": (3, "string")},
    "StatusRequest": {"verbose": (1, "bool")},
    "StatusResponse": {"info": (2, _MAP)},
    # Pods
    "PodSandboxMetadata": {
        "name": (1, "string"), "uid": (2, "string"), "namespace": (3, "string"), "attempt": (4, "uint32"),
    },
    "NamespaceOption": {"network": (1, "int32"), "pid": (2, "int32"), "ipc": (3, "int32")},
    "LinuxSandboxSecurityContext": {"namespace_options": (1, "NamespaceOption"), "privileged": (6, "bool")},
    "LinuxPodSandboxConfig": {
        "cgroup_parent": (1, "string"), "security_context": (2, "LinuxSandboxSecurityContext"),
    },
    "PodSandboxConfig": {
        "metadata": (1, "PodSandboxMetadata"), "hostname": (2, "string"), "log_directory": (3, "string"),
        "labels": (6, _MAP), "annotations": (7, _MAP), "linux": (8, "LinuxPodSandboxConfig"),
    },
    "RunPodSandboxRequest": {"config": (1, "PodSandboxConfig")},
    "RunPodSandboxResponse": {"pod_sandbox_id": (1, "string")},
    "StopPodSandboxRequest": {"pod_sandbox_id": (1, "string")},
    "StopPodSandboxResponse": {},
    "RemovePodSandboxRequest": {"pod_sandbox_id": (1, "string")},
    "RemovePodSandboxResponse": {},
    "PodSandboxFilter": {"label_selector": (3, _MAP)},
    "ListPodSandboxRequest": {"filter": (1, "PodSandboxFilter")},
    "PodSandbox": {
        "id": (1, "string"), "metadata": (2, "PodSandboxMetadata"), "state": (3, "int32"), "annotations": (6, _MAP),
    },
    "ListPodSandboxResponse": {"items": (1, "repeated PodSandbox")},
    # Containers
    "ContainerMetadata": {"name": (1, "string"), "attempt": (2, "uint32")},
    "ImageSpec": {"image": (1, "string")},
    "KeyValue": {"key": (1, "string"), "value": (2, "string")},
    "Mount": {"container_path": (1, "string"), "host_path": (2, "string"), "readonly": (3, "bool")},
    "LinuxContainerResources": {
        "cpu_period": (1, "int64"), "cpu_quota": (2, "int64"), "cpu_shares": (3, "int64"),
        "memory_limit_in_bytes": (4, "int64"), "oom_score_adj": (5, "int64"), "unified": (9, _MAP),
    },
    "Int64Value": {"value": (1, "int64")},
    "Capability": {"add_capabilities": (1, "repeated string"), "drop_capabilities": (2, "repeated string")},
    "LinuxContainerSecurityContext": {
        "capabilities": (1, "Capability"), "privileged": (2, "bool"), "namespace_options": (3, "NamespaceOption"),
        "run_as_user": (5, "Int64Value"), "run_as_username": (6, "string"), "readonly_rootfs": (7, "bool"),
        "supplemental_groups": (8, "repeated int64"), "no_new_privs": (11, "bool"), "run_as_group": (12, "Int64Value"),
    },
    "LinuxContainerConfig": {
        "resources": (1, "LinuxContainerResources"), "security_context": (2, "LinuxContainerSecurityContext"),
    },
    "ContainerConfig": {
        "metadata": (1, "ContainerMetadata"), "image": (2, "ImageSpec"), "command": (3, "repeated string"),
        "args": (4, "repeated string"), "working_dir": (5, "string"), "envs": (6, "repeated KeyValue"),
        "mounts": (7, "repeated Mount"), "labels": (9, _MAP), "annotations": (10, _MAP), "log_path": (11, "string"),
        "linux": (15, "LinuxContainerConfig"),
    },
    "CreateContainerRequest": {
        "pod_sandbox_id": (1, "string"), "config": (2, "ContainerConfig"), "sandbox_config": (3, "PodSandboxConfig"),
    },
    "CreateContainerResponse": {"container_id": (1, "string")},
    "StartContainerRequest": {"container_id": (1, "string")},
    "StartContainerResponse": {},
    "RemoveContainerRequest": {"container_id": (1, "string")},
    "RemoveContainerResponse": {},
    "ContainerFilter": {"label_selector": (4, _MAP)},
    "ListContainersRequest": {"filter": (1, "ContainerFilter")},
    "Container": {
        "id": (1, "string"), "metadata": (3, "ContainerMetadata"), "image_ref": (5, "string"), "state": (6, "int32"),
        "labels": (8, _MAP), "annotations": (9, _MAP),
    },
    "ListContainersResponse": {"containers": (1, "repeated Container")},
    "ContainerStatusRequest": {"container_id": (1, "string"), "verbose": (2, "bool")},
    "ContainerStatus": {
        "state": (3, "int32"), "exit_code": (7, "int32"), "reason": (10, "string"), "message": (11, "string"),
    },
    "ContainerStatusResponse": {"status": (1, "ContainerStatus"), "info": (2, _MAP)},
    "ReopenContainerLogRequest": {"container_id": (1, "string")},
    "ReopenContainerLogResponse": {},
    "ExecSyncRequest": {"container_id": (1, "string"), "cmd": (2, "repeated string"), "timeout": (3, "int64")},
    "ExecSyncResponse": {"exit_code": (3, "int32")},
    # Images
    "Image": {
        "id": (1, "string"), "repo_tags": (2, "repeated string"), "size": (4, "uint64"), "uid": (5, "Int64Value"),
        "username": (6, "string"), "pinned": (8, "bool"),
    },
    "ListImagesRequest": {},
    "ListImagesResponse": {"images": (1, "repeated Image")},
    "ImageStatusRequest": {"image": (1, "ImageSpec")},
    "ImageStatusResponse": {"image": (1, "Image")},
    "RemoveImageRequest": {"image": (1, "ImageSpec")},
    "RemoveImageResponse": {},
}  # fmt: skip


class Message(Protocol):
    """The part of a protobuf message class that is used here."""

    def SerializeToString(self) -> bytes:  # noqa: N802 - the library's name
        """Return the message in wire format."""

    def ParseFromString(self, data: bytes) -> int:  # noqa: N802 - the library's name
        """Read a message."""


def encode(name: str, value: Mapping[str, object]) -> bytes:
    """Return a message in wire format; raises ``json_format.ParseError`` for an unknown field."""
    message = _class(name)()
    json_format.ParseDict(dict(value), message)
    return message.SerializeToString()


def decode(name: str, data: bytes) -> dict[str, object]:
    """Return the fields of a message; defaults are left out, 64-bit numbers are strings."""
    message = _class(name)()
    message.ParseFromString(data)
    return cast("dict[str, object]", json_format.MessageToDict(message, preserving_proto_field_name=True))


@cache
def _pool() -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    file = descriptor_pb2.FileDescriptorProto(name="podqos/cri.proto", package=PACKAGE, syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            _add_field(message, field, number, kind)
    pool.Add(file)
    return pool


def _add_field(message: descriptor_pb2.DescriptorProto, name: str, number: int, kind: str) -> None:
    types = descriptor_pb2.FieldDescriptorProto
    field = message.field.add(name=name, number=number, label=types.LABEL_OPTIONAL)
    if kind == _MAP:
        # A map is a repeated entry message, named as in the language guide.
        entry = message.nested_type.add(name=f"{name.title().replace('_', '')}Entry")
        entry.options.map_entry = True
        for index, part in enumerate(("key", "value"), 1):
            entry.field.add(name=part, number=index, label=types.LABEL_OPTIONAL, type=types.TYPE_STRING)
        kind = f"{_REPEATED}{message.name}.{entry.name}"
    if kind.startswith(_REPEATED):
        field.label = types.LABEL_REPEATED
        kind = kind.removeprefix(_REPEATED)
    scalar = f"TYPE_{kind.upper()}"
    if kind.islower():
        field.type = getattr(types, scalar)
    else:
        field.type = types.TYPE_MESSAGE
        field.type_name = f".{PACKAGE}.{kind}"


@cache
def _class(name: str) -> type[Message]:
    found = message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{PACKAGE}.{name}"))
    return cast("type[Message]", found)
