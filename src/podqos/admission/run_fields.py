"""What the API server rejects about a container other than its resources: ports, environment, mounts, probes, hooks.

No decision of podqos needs these fields, so they are not in ``model.pod``; they are checked in the object as written.
``security`` checks what a container may do.

Source: Kubernetes v1.36 pkg/apis/core/validation/validation.go (validateContainerCommon, validateContainerPorts,
ValidateEnv, ValidateEnvFrom, ValidateVolumeMounts, ValidateVolumeDevices, validateLifecycle, validateProbe,
validateHandler) and staging/src/k8s.io/apimachinery/pkg/util/validation/validation.go; defaults from
pkg/apis/core/v1/defaults.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from podqos.admission.as_written import (
    Errors,
    Fields,
    choice_errors,
    fields_of,
    items_of,
    number_of,
    objects_of,
    text_of,
)
from podqos.admission.downward import field_errors, resource_errors
from podqos.admission.field_errors import duplicate, forbidden, invalid, not_found, not_supported, required
from podqos.admission.names import config_key_complaints, label_complaints, prefix_complaints, subdomain_complaints
from podqos.admission.paths import backstep_errors, descending_errors
from podqos.admission.volume_sources import PULL_POLICIES
from podqos.manifest.plain import Plain

_PROTOCOLS = ("SCTP", "TCP", "UDP")
_SCHEMES = ("HTTP", "HTTPS")
_TERMINATION_POLICIES = ("File", "FallbackToLogsOnError")
_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_READ_ONLY_MODES = ("Disabled", "Enabled", "IfPossible")
_PROBE_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_LIFECYCLE_HANDLERS = ("exec", "httpGet", "tcpSocket", "sleep")
_COUNTS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_FIELD_PATHS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip

_DEFAULT_GRACE = 30
_LAST_PORT = 65535
_WRONG_PORT = f"must be between 1 and {_LAST_PORT}, inclusive"
_NEGATIVE = "must be greater than or equal to 0"
_WRONG_VARIABLE = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_HEADER = "[-A-Za-z0-9]+"
_WRONG_HEADER = (
    "a valid HTTP header must consist of alphanumeric characters or '-' "
    f"(e.g. 'X-Header-Name', regex used for validation is '{_HEADER}')"
)


def run_field_errors(container: Fields, path: str, volumes: Mapping[str, Fields]) -> Errors:
    """Check what every kind of container may have; ``volumes`` are those of the pod, by name."""
    yield from choice_errors(container, "terminationMessagePolicy", _TERMINATION_POLICIES, path, default="File")
    yield from _port_errors(container, f"{path}.ports")
    for variable, at in objects_of(container.get("env"), f"{path}.env"):
        yield from _variable_errors(variable, at)
    yield from _source_errors(items_of(container.get("envFrom")), f"{path}.envFrom")
    yield from _mount_errors(container, f"{path}.volumeMounts", volumes)
    yield from _device_errors(container, f"{path}.volumeDevices", volumes)
    yield from choice_errors(container, "imagePullPolicy", PULL_POLICIES, path, default="Always")


# ---- ports ---------------------------------------------------------------------------------------------------------


def with_host_ports(spec: Fields) -> Fields:
    """Return the spec of a pod with what is filled in where it uses the machine's network: the ports of the machine."""
    if spec.get("hostNetwork") is not True:
        return spec
    filled: Fields = {
        field: [_with_host_ports(fields_of(container)) for container in items_of(spec[field])]
        for field in ("containers", "initContainers")
        if field in spec
    }
    return spec | filled


def _with_host_ports(container: Fields) -> Fields:
    ports: list[Plain] = []
    for port in items_of(container.get("ports")):
        own = fields_of(port)
        ports.append(own if number_of(own, "hostPort") else own | {"hostPort": number_of(own, "containerPort")})
    return container | {"ports": ports}


def _port_errors(container: Fields, path: str) -> Errors:
    names: set[str] = set()
    for port, at in objects_of(container.get("ports"), path):
        name = text_of(port, "name")
        complaints = port_name_complaints(name) if name else []
        for complaint in complaints:
            yield invalid(f"{at}.name", name, complaint)
        if name in names:
            yield duplicate(f"{at}.name", name)
        elif name and not complaints:
            names.add(name)
        if not number_of(port, "containerPort"):
            yield required(f"{at}.containerPort")
        for field in ("containerPort", "hostPort"):
            number = number_of(port, field)
            if number and not _is_port(number):
                yield invalid(f"{at}.{field}", number, _WRONG_PORT)
        yield from choice_errors(port, "protocol", _PROTOCOLS, at, default="TCP")


def host_port_errors(containers: list[Plain], path: str) -> Errors:
    """Check that no two containers ask for the same port of the machine."""
    taken: set[str] = set()
    for container, at in objects_of(containers, path):
        for port, port_at in objects_of(container.get("ports"), f"{at}.ports"):
            number = number_of(port, "hostPort")
            place = f"{text_of(port, 'protocol') or 'TCP'}/{text_of(port, 'hostIP')}/{number}"
            if place in taken:
                yield duplicate(f"{port_at}.hostPort", place)
            elif number:
                taken.add(place)


def host_network_errors(spec: Fields) -> Errors:
    """Check that in the machine's network, containers have the ports of the machine."""
    if spec.get("hostNetwork") is not True:
        return
    for container, path in objects_of(spec.get("containers"), "spec.containers"):
        for port, at in objects_of(container.get("ports"), f"{path}.ports"):
            # Of a template, it may be filled in later.
            if number_of(port, "hostPort") not in {0, number_of(port, "containerPort")}:
                words = "must match `containerPort` when `hostNetwork` is true"
                yield invalid(f"{at}.hostPort", number_of(port, "hostPort"), words)


# ---- environment ---------------------------------------------------------------------------------------------------


def _variable_errors(variable: Fields, path: str) -> Errors:
    yield from _variable_name_errors(variable, "name", path)
    if variable.get("valueFrom") is None:
        return
    path = f"{path}.valueFrom"
    sources = {name: fields_of(value) for name, value in fields_of(variable["valueFrom"]).items() if value is not None}
    if "fieldRef" in sources:
        yield from field_errors(sources["fieldRef"], _FIELD_PATHS, f"{path}.fieldRef")
    if "resourceFieldRef" in sources:
        yield from resource_errors(sources["resourceFieldRef"], f"{path}.resourceFieldRef")
    for name in ("configMapKeyRef", "secretKeyRef"):
        if name in sources:
            yield from _key_errors(sources[name], f"{path}.{name}")
    if "fileKeyRef" in sources:
        yield from _file_key_errors(sources["fileKeyRef"], f"{path}.fileKeyRef")
    if not sources:
        words = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        yield invalid(path, "", words)
    elif text_of(variable, "value"):
        yield invalid(path, "", "may not be specified when `value` is not empty")
    elif len(sources) > 1:
        yield invalid(path, "", "may not have more than one field specified at a time")


def _variable_name_errors(fields: Fields, field: str, path: str) -> Errors:
    name = text_of(fields, field)
    if not name:
        yield required(f"{path}.{field}")
    elif not all(" " <= letter <= "~" and letter != "=" for letter in name):
        yield invalid(f"{path}.{field}", name, _WRONG_VARIABLE)


def _key_errors(reference: Fields, path: str) -> Errors:
    name, key = text_of(reference, "name"), text_of(reference, "key")
    for complaint in subdomain_complaints(name):
        yield invalid(f"{path}.name", name, complaint)
    if not key:
        yield required(f"{path}.key")
    for complaint in config_key_complaints(key) if key else ():
        yield invalid(f"{path}.key", key, complaint)


def _file_key_errors(reference: Fields, path: str) -> Errors:
    yield from _variable_name_errors(reference, "key", path)
    volume, where = text_of(reference, "volumeName"), text_of(reference, "path")
    if not volume:
        yield required(f"{path}.volumeName")
    for complaint in label_complaints(volume) if volume else ():
        yield invalid(f"{path}.volumeName", volume, complaint)
    if not where:
        yield required(f"{path}.path")
    yield from backstep_errors(where, f"{path}.path")


def _source_errors(sources: list[Plain], path: str) -> Errors:
    for source, at in objects_of(sources, path):
        if text_of(source, "prefix"):
            yield from _variable_name_errors(source, "prefix", at)
        given = [name for name in ("configMapRef", "secretRef") if source.get(name) is not None]
        for reference in given:
            name = text_of(fields_of(source[reference]), "name")
            if not name:
                yield required(f"{at}.{reference}.name")
            for complaint in prefix_complaints(name) if name else ():
                yield invalid(f"{at}.{reference}.name", name, complaint)
        # Upstream names the list, not the item.
        if not given:
            yield invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(given) > 1:
            yield invalid(path, "", "may not have more than one field specified at a time")


# ---- mounts --------------------------------------------------------------------------------------------------------


def _mount_errors(container: Fields, path: str, volumes: Mapping[str, Fields]) -> Errors:
    devices = _places(container, "volumeDevices", "devicePath")
    places: set[str] = set()
    for mount, at in objects_of(container.get("volumeMounts"), path):
        name, where = text_of(mount, "name"), text_of(mount, "mountPath")
        if not name:
            yield required(f"{at}.name")
        if name not in volumes:
            yield not_found(f"{at}.name", name)
        if not where:
            yield required(f"{at}.mountPath")
        if where in places:
            yield invalid(f"{at}.mountPath", where, "must be unique")
        places.add(where)
        yield from _overlap_errors(name, where, devices, "volumeDevices", (f"{at}.name", f"{at}.mountPath"))
        for field in ("subPath", "subPathExpr"):
            below = text_of(mount, field)
            if field == "subPathExpr" and below and text_of(mount, "subPath"):
                yield invalid(f"{at}.{field}", below, "subPathExpr and subPath are mutually exclusive")
            # Upstream names the list, not the item; so it does below.
            yield from descending_errors(below, f"{path}.{field}")
        yield from choice_errors(mount, "mountPropagation", _PROPAGATIONS, path)
        is_privileged = fields_of(container.get("securityContext")).get("privileged") is True
        if mount.get("mountPropagation") == "Bidirectional" and not is_privileged:
            words = "Bidirectional mount propagation is available only to privileged containers"
            yield forbidden(f"{path}.mountPropagation", words)
        yield from _read_only_errors(mount, path)


def _read_only_errors(mount: Fields, path: str) -> Errors:
    yield from choice_errors(mount, "recursiveReadOnly", _READ_ONLY_MODES, path)
    if mount.get("recursiveReadOnly") not in {"Enabled", "IfPossible"}:
        return
    if mount.get("readOnly") is not True:
        yield forbidden(f"{path}.recursiveReadOnly", "may only be specified when readOnly is true")
    if mount.get("mountPropagation") not in {None, "None"}:
        words = "may only be specified when mountPropagation is None or not specified"
        yield forbidden(f"{path}.recursiveReadOnly", words)


def _device_errors(container: Fields, path: str, volumes: Mapping[str, Fields]) -> Errors:
    mounts = _places(container, "volumeMounts", "mountPath")
    names: set[str] = set()
    places: set[str] = set()
    for device, at in objects_of(container.get("volumeDevices"), path):
        name, where = text_of(device, "name"), text_of(device, "devicePath")
        if not name:
            yield required(f"{at}.name")
        if name in names:
            yield invalid(f"{at}.name", name, "must be unique")
        source = volumes.get(name)
        if source is None:
            yield not_found(f"{at}.name", name)
        elif source.get("persistentVolumeClaim") is None and source.get("ephemeral") is None:
            words = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            yield invalid(f"{at}.name", name, words)
        if not where:
            yield required(f"{at}.devicePath")
        if where in places:
            yield invalid(f"{at}.devicePath", where, "must be unique")
        if any(backstep_errors(where, path)):
            yield invalid(f"{at}.devicePath", where, "can not contain backsteps ('..')")
        else:
            places.add(where)
        yield from _overlap_errors(name, where, mounts, "volumeMounts", (f"{at}.name", f"{at}.devicePath"))
        if name:
            names.add(name)


def _places(container: Fields, field: str, place: str) -> dict[str, str]:
    """Return where each volume is found in a container."""
    return {text_of(each, "name"): text_of(each, place) for each, _ in objects_of(container.get(field), "")}


def _overlap_errors(name: str, where: str, others: dict[str, str], field: str, paths: tuple[str, str]) -> Errors:
    """Check that nothing is mounted and a device at once."""
    if name in others:
        yield invalid(paths[0], name, f"must not already exist in {field}")
    if where in others.values():
        yield invalid(paths[1], where, f"must not already exist as a path in {field}")


# ---- probes and lifecycle ------------------------------------------------------------------------------------------


def running_errors(container: Fields, path: str, spec: Fields) -> Errors:
    """Check the lifecycle and the probes of a container that keeps running."""
    lifecycle = fields_of(container.get("lifecycle"))
    for name in ("postStart", "preStop"):
        if lifecycle.get(name) is not None:
            at = f"{path}.lifecycle.{name}"
            yield from _handler_errors(fields_of(lifecycle[name]), _LIFECYCLE_HANDLERS, at, _grace(spec))
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(name) is None:
            continue
        probe, at = fields_of(container[name]), f"{path}.{name}"
        yield from _handler_errors(probe, _PROBE_HANDLERS, at, 0)
        for field in _COUNTS:
            given = number_of(probe, field)
            if given < 0:
                yield invalid(f"{at}.{field}", given, _NEGATIVE)
        grace = probe.get("terminationGracePeriodSeconds")
        if isinstance(grace, int) and grace <= 0:
            yield invalid(f"{at}.terminationGracePeriodSeconds", grace, "must be greater than 0")
        if isinstance(grace, int) and name == "readinessProbe":
            yield invalid(f"{at}.terminationGracePeriodSeconds", grace, "must not be set for readinessProbes")
        successes = number_of(probe, "successThreshold") or 1
        if successes != 1 and name != "readinessProbe":
            yield invalid(f"{at}.successThreshold", successes, "must be 1")


def _grace(spec: Fields) -> int:
    """Return how long a pod has to terminate; a negative time counts as a second."""
    seconds = spec.get("terminationGracePeriodSeconds")
    if not isinstance(seconds, int):
        return _DEFAULT_GRACE
    return 1 if seconds < 0 else seconds


def _handler_errors(handlers: Fields, known: tuple[str, ...], path: str, grace: int) -> Errors:
    given = [name for name in known if handlers.get(name) is not None]
    if not given:
        yield required(path, "must specify a handler type")
        return
    handler, at = fields_of(handlers[given[0]]), f"{path}.{given[0]}"
    match given[0]:
        case "exec":
            if not items_of(handler.get("command")):
                yield required(f"{at}.command")
        case "sleep":
            seconds = number_of(handler, "seconds")
            if not 0 <= seconds <= grace:
                words = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
                yield invalid(at, seconds, words)
        case "httpGet":
            yield from _number_or_name_errors(handler.get("port"), f"{at}.port")
            scheme = text_of(handler, "scheme") or "HTTP"
            if scheme not in _SCHEMES:
                yield not_supported(f"{at}.scheme", scheme, _SCHEMES)
            for header in items_of(handler.get("httpHeaders")):
                name = text_of(fields_of(header), "name")
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
