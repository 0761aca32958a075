"""What the API server refuses about the fields that only a node reads: volumes, mounts, ports, environment, probes.

No decision of podqos needs them, so they are not in ``model.pod``; they are checked in the object as written, which
``decoding`` has found to have the right types. Fields that a value comes from elsewhere for (``configMapKeyRef``,
``envFrom``), lifecycles, devices and security contexts are not checked.

Source: Kubernetes v1.36 pkg/apis/core/validation/validation.go (validateVolumeSource, validateContainerPorts,
ValidateEnv, ValidateVolumeMounts, validateProbe, validateHandler, validateLocalDescendingPath) and
staging/src/k8s.io/apimachinery/pkg/util/validation/validation.go; defaults from pkg/apis/core/v1/defaults.go.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from podqos.admission.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
)
from podqos.admission.names import label_complaints
from podqos.manifest.plain import Plain

Errors = Iterator[FieldError]
Fields = dict[str, Plain]

_HOST_PATH_TYPES = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
)  # fmt: skip
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_SCHEMES = ("HTTP", "HTTPS")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_COUNTS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_FIELD_PATHS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
_OTHER_FIELD_PATHS = (
    "metadata.annotations", "metadata.labels", "spec.restartPolicy", "spec.schedulerName", "status.phase",
)  # fmt: skip
_RESOURCES = tuple(
    f"{side}.{name}" for side in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory")
)
_HUGE_PAGES = ("limits.hugepages-", "requests.hugepages-")

_LAST_PORT = 65535
_WRONG_PORT = f"must be between 1 and {_LAST_PORT}, inclusive"
_NEGATIVE = "must be greater than or equal to 0"
_WRONG_VARIABLE = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_HEADER = "[-A-Za-z0-9]+"
_WRONG_HEADER = (
    "a valid HTTP header must consist of alphanumeric characters or '-' "
    f"(e.g. 'X-Header-Name', regex used for validation is '{_HEADER}')"
)


def fields_of(value: Plain) -> Fields:
    """Return an object's fields; none where it is missing."""
    return value if isinstance(value, dict) else {}


def items_of(value: Plain) -> list[Plain]:
    """Return a list's items; none where it is missing."""
    return value if isinstance(value, list) else []


def item_of(value: Plain, index: int) -> Fields:
    """Return the fields of one item of a list; none where there is no such item."""
    items = items_of(value)
    return fields_of(items[index]) if index < len(items) else {}


def host_name_errors(spec: Fields) -> Errors:
    """Check the name that a pod wants to have for itself."""
    name = _text(spec, "hostname")
    for complaint in label_complaints(name) if name else ():
        yield invalid("spec.hostname", name, complaint)


# ---- volumes -------------------------------------------------------------------------------------------------------


def volume_source_errors(volume: Fields, path: str) -> Errors:
    """Check where a volume comes from: one source (none: an empty directory), and no way out of one of the machine."""
    given = [name for name, value in volume.items() if name != "name" and value is not None]
    given.sort(key=lambda name: {"emptyDir": 0, "hostPath": 1}.get(name, 2))
    if given[:1] == ["hostPath"]:
        yield from _host_path_errors(fields_of(volume["hostPath"]), f"{path}.hostPath")
    for name in given[1:]:
        yield forbidden(f"{path}.{name}", "may not specify more than 1 volume type")


def _host_path_errors(host_path: Fields, path: str) -> Errors:
    where, kind = _text(host_path, "path"), _text(host_path, "type")
    if not where:
        yield required(f"{path}.path")
        return
    yield from _backstep_errors(where, f"{path}.path")
    if kind not in _HOST_PATH_TYPES:
        yield not_supported(f"{path}.type", kind, _HOST_PATH_TYPES)


def _backstep_errors(where: str, path: str) -> Errors:
    if ".." in where.split("/"):
        yield invalid(path, where, "must not contain '..'")


# ---- containers ----------------------------------------------------------------------------------------------------


def run_field_errors(container: Fields, path: str, volumes: Collection[str]) -> Errors:
    """Check what every kind of container may have; ``volumes`` are the names of the pod's."""
    yield from _port_errors(items_of(container.get("ports")), f"{path}.ports")
    for index, variable in enumerate(items_of(container.get("env"))):
        yield from _variable_errors(fields_of(variable), f"{path}.env[{index}]")
    yield from _mount_errors(items_of(container.get("volumeMounts")), f"{path}.volumeMounts", volumes)


def _port_errors(ports: list[Plain], path: str) -> Errors:
    names: set[str] = set()
    for index, value in enumerate(ports):
        port, at = fields_of(value), f"{path}[{index}]"
        name, number, protocol = _text(port, "name"), _number(port, "containerPort"), _text(port, "protocol") or "TCP"
        complaints = port_name_complaints(name) if name else []
        for complaint in complaints:
            yield invalid(f"{at}.name", name, complaint)
        if name in names:
            yield duplicate(f"{at}.name", name)
        elif name and not complaints:
            names.add(name)
        if not number:
            yield required(f"{at}.containerPort")
        for field in ("containerPort", "hostPort"):
            given = _number(port, field)
            if given and not _is_port(given):
                yield invalid(f"{at}.{field}", given, _WRONG_PORT)
        if protocol not in _PROTOCOLS:
            yield not_supported(f"{at}.protocol", protocol, _PROTOCOLS)


def host_port_errors(containers: list[Plain], path: str) -> Errors:
    """Check that no two containers ask for the same port of the machine."""
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for number, value in enumerate(items_of(fields_of(container).get("ports"))):
            port = fields_of(value)
            place = f"{_text(port, 'protocol') or 'TCP'}/{_text(port, 'hostIP')}/{_number(port, 'hostPort')}"
            if place in taken:
                yield duplicate(f"{path}[{index}].ports[{number}].hostPort", place)
            elif _number(port, "hostPort"):
                taken.add(place)


def _variable_errors(variable: Fields, path: str) -> Errors:
    name = _text(variable, "name")
    if not name:
        yield required(f"{path}.name")
    elif not all(" " <= letter <= "~" and letter != "=" for letter in name):
        yield invalid(f"{path}.name", name, _WRONG_VARIABLE)
    if variable.get("valueFrom") is None:
        return
    path = f"{path}.valueFrom"
    sources = {name: fields_of(value) for name, value in fields_of(variable["valueFrom"]).items() if value is not None}
    if "fieldRef" in sources:
        yield from _field_errors(_text(sources["fieldRef"], "fieldPath"), f"{path}.fieldRef")
    if "resourceFieldRef" in sources:
        yield from _resource_errors(_text(sources["resourceFieldRef"], "resource"), f"{path}.resourceFieldRef")
    if not sources:
        words = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        yield invalid(path, "", words)
    elif _text(variable, "value"):
        yield invalid(path, "", "may not be specified when `value` is not empty")
    elif len(sources) > 1:
        yield invalid(path, "", "may not have more than one field specified at a time")


def _field_errors(where: str, path: str) -> Errors:
    if not where:
        yield required(f"{path}.fieldPath")
    elif "['" in where and where.endswith("']"):
        if not where.startswith(("metadata.labels['", "metadata.annotations['")):
            words = f"error converting fieldPath: field label does not support subscript: {where}"
            yield invalid(f"{path}.fieldPath", where, words)
    elif where in _OTHER_FIELD_PATHS:
        yield not_supported(f"{path}.fieldPath", where, _FIELD_PATHS)
    elif where not in _FIELD_PATHS:
        words = f"error converting fieldPath: field label not supported: {where}"
        yield invalid(f"{path}.fieldPath", where, words)


def _resource_errors(resource: str, path: str) -> Errors:
    if not resource:
        yield required(f"{path}.resource")
    elif resource not in _RESOURCES and not resource.startswith(_HUGE_PAGES):
        yield not_supported(f"{path}.resource", resource, _RESOURCES)


def _mount_errors(mounts: list[Plain], path: str, volumes: Collection[str]) -> Errors:
    places: set[str] = set()
    for index, value in enumerate(mounts):
        mount, at = fields_of(value), f"{path}[{index}]"
        name, where = _text(mount, "name"), _text(mount, "mountPath")
        if not name:
            yield required(f"{at}.name")
        if name not in volumes:
            yield not_found(f"{at}.name", name)
        if not where:
            yield required(f"{at}.mountPath")
        if where in places:
            yield invalid(f"{at}.mountPath", where, "must be unique")
        places.add(where)
        for field in ("subPath", "subPathExpr"):
            below = _text(mount, field)
            if field == "subPathExpr" and below and _text(mount, "subPath"):
                yield invalid(f"{at}.{field}", below, "subPathExpr and subPath are mutually exclusive")
            # Upstream names the list, not the item.
            if below.startswith("/"):
                yield invalid(f"{path}.{field}", below, "must be a relative path")
            yield from _backstep_errors(below, f"{path}.{field}")


# ---- probes --------------------------------------------------------------------------------------------------------


def probe_errors(container: Fields, path: str) -> Errors:
    """Check the probes of a container that keeps running."""
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(name) is None:
            continue
        probe, at = fields_of(container[name]), f"{path}.{name}"
        yield from _handler_errors(probe, at)
        for field in _COUNTS:
            given = _number(probe, field)
            if given < 0:
                yield invalid(f"{at}.{field}", given, _NEGATIVE)
        grace = probe.get("terminationGracePeriodSeconds")
        if isinstance(grace, int) and grace <= 0:
            yield invalid(f"{at}.terminationGracePeriodSeconds", grace, "must be greater than 0")
        if isinstance(grace, int) and name == "readinessProbe":
            yield invalid(f"{at}.terminationGracePeriodSeconds", grace, "must not be set for readinessProbes")
        successes = _number(probe, "successThreshold") or 1
        if successes != 1 and name != "readinessProbe":
            yield invalid(f"{at}.successThreshold", successes, "must be 1")


def _handler_errors(probe: Fields, path: str) -> Errors:
    given = [name for name in _HANDLERS if probe.get(name) is not None]
    if not given:
        yield required(path, "must specify a handler type")
        return
    handler, at = fields_of(probe[given[0]]), f"{path}.{given[0]}"
    match given[0]:
        case "exec":
            if not items_of(handler.get("command")):
                yield required(f"{at}.command")
        case "httpGet":
            yield from _number_or_name_errors(handler.get("port"), f"{at}.port")
            scheme = _text(handler, "scheme") or "HTTP"
            if scheme not in _SCHEMES:
                yield not_supported(f"{at}.scheme", scheme, _SCHEMES)
            for header in items_of(handler.get("httpHeaders")):
                name = _text(fields_of(header), "name")
                if not re.fullmatch(_HEADER, name):
                    yield invalid(f"{at}.httpHeaders", name, _WRONG_HEADER)
        case _:
            yield from _number_or_name_errors(handler.get("port"), f"{at}.port")
    for name in given[1:]:
        yield forbidden(f"{path}.{name}", "may not specify more than 1 handler type")


def _number_or_name_errors(port: Plain, path: str) -> Errors:
    if isinstance(port, str):
        for complaint in port_name_complaints(port):
            yield invalid(path, port, complaint)
    else:
        number = port if isinstance(port, int) else 0
        if not _is_port(number):
            yield invalid(path, number, _WRONG_PORT)


def port_name_complaints(name: str) -> list[str]:
    """Check the name of a port: an IANA service name."""
    complaints = ["must be no more than 15 characters"] if len(name.encode()) > 15 else []
    if not re.fullmatch("[-a-z0-9]+", name):
        complaints.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", name):
        complaints.append("must contain at least one letter (a-z)")
    if "--" in name:
        complaints.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        complaints.append("must not begin or end with a hyphen")
    return complaints


def _is_port(number: int) -> bool:
    return 1 <= number <= _LAST_PORT


def _text(fields: Fields, name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def _number(fields: Fields, name: str) -> int:
    value = fields.get(name)
    return value if isinstance(value, int) else 0
