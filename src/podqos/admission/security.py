"""What the API server rejects about what a pod and its containers may do: security contexts and shared namespaces.

Windows options are not checked, only that a pod for Linux has none. Privileged containers are taken to be allowed,
as nearly every cluster does.

Source: Kubernetes v1.36 pkg/apis/core/validation/validation.go (validatePodSpecSecurityContext,
ValidateSecurityContext, validateSeccompProfileField, ValidateAppArmorProfileField, validateSysctls, validateHostUsers,
validateLinux, validateWindows) and staging/src/k8s.io/component-helpers/node/util/sysctl.
"""

from __future__ import annotations

import re

from podqos.admission.as_written import (
    Errors,
    Fields,
    choice_errors,
    containers_of,
    fields_of,
    go_struct,
    items_of,
    objects_of,
    text_of,
)
from podqos.admission.field_errors import duplicate, forbidden, invalid, not_supported, required, too_long
from podqos.admission.paths import descending_errors
from podqos.manifest.plain import Plain

_LARGEST_ID = 2**31 - 1
_WRONG_ID = f"must be between 0 and {_LARGEST_ID}, inclusive"
_PROFILE_TYPES = ("Localhost", "RuntimeDefault", "Unconfined")
_LONGEST_PROFILE = 4095
_SYSCTL_PART = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = rf"^({_SYSCTL_PART}[\./])*{_SYSCTL_PART}$"
_LONGEST_SYSCTL = 253
_IPC_SYSCTLS = (
    "kernel.sem", "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced", "kernel.shm",
    "kernel.msgmax", "kernel.msgmnb", "kernel.msgmni", "kernel.msg",
)  # fmt: skip

_PROFILE = {"type": ("Type", ""), "localhostProfile": ("LocalhostProfile", None)}
_STRUCTS: dict[str, dict[str, tuple[str, Plain]]] = {
    "capabilities": {"add": ("Add", None), "drop": ("Drop", None)},
    "seLinuxOptions": {"user": ("User", ""), "role": ("Role", ""), "type": ("Type", ""), "level": ("Level", "")},
    "windowsOptions": {
        "gmsaCredentialSpecName": ("GMSACredentialSpecName", None),
        "gmsaCredentialSpec": ("GMSACredentialSpec", None),
        "runAsUserName": ("RunAsUserName", None),
        "hostProcess": ("HostProcess", None),
    },
    "seccompProfile": {**_PROFILE},
    "appArmorProfile": {**_PROFILE},
}
_CONTEXT: dict[str, tuple[str, Plain]] = {
    "capabilities": ("Capabilities", None),
    "privileged": ("Privileged", None),
    "seLinuxOptions": ("SELinuxOptions", None),
    "windowsOptions": ("WindowsOptions", None),
    "runAsUser": ("RunAsUser", None),
    "runAsGroup": ("RunAsGroup", None),
    "runAsNonRoot": ("RunAsNonRoot", None),
    "readOnlyRootFilesystem": ("ReadOnlyRootFilesystem", None),
    "allowPrivilegeEscalation": ("AllowPrivilegeEscalation", None),
    "procMount": ("ProcMount", None),
    "seccompProfile": ("SeccompProfile", None),
    "appArmorProfile": ("AppArmorProfile", None),
}

# What a pod for Windows must not have: of the pod, of its security context, of that of a container.
_WINDOWS_POD = (
    "securityContext.appArmorProfile", "securityContext.seLinuxOptions", "hostUsers", "hostPID", "hostIPC",
    "securityContext.seccompProfile", "securityContext.fsGroup", "securityContext.fsGroupChangePolicy",
    "securityContext.sysctls", "shareProcessNamespace", "securityContext.runAsUser", "securityContext.runAsGroup",
    "securityContext.supplementalGroups", "securityContext.supplementalGroupsPolicy",
    "securityContext.seLinuxChangePolicy",
)  # fmt: skip
_WINDOWS_CONTAINER = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem", "privileged",
    "allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup",
)  # fmt: skip
# These say nothing when they are false or empty.
_FLAGS = frozenset({"hostPID", "hostIPC", "securityContext.sysctls"})


def pod_security_errors(spec: Fields) -> Errors:
    """Check the security context of a pod, and what it shares with the machine that bears on it."""
    context, path = fields_of(spec.get("securityContext")), "spec.securityContext"
    yield from _id_errors(context, ("fsGroup", "runAsUser", "runAsGroup"), path)
    for index, group in enumerate(items_of(context.get("supplementalGroups"))):
        yield from _one_id_errors(group, f"{path}.supplementalGroups[{index}]")
    if spec.get("shareProcessNamespace") is True and spec.get("hostPID") is True:
        words = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid(f"{path}.shareProcessNamespace", value=True, detail=words)
    yield from _sysctl_errors(context, f"{path}.sysctls", spec)
    yield from choice_errors(context, "fsGroupChangePolicy", ("Always", "OnRootMismatch"), path)
    yield from _seccomp_errors(context, f"{path}.seccompProfile")
    yield from _app_armor_errors(context, f"{path}.appArmorProfile")
    yield from choice_errors(context, "supplementalGroupsPolicy", ("Merge", "Strict"), path)
    # The other policy comes with a feature that is off by default.
    yield from choice_errors(context, "seLinuxChangePolicy", ("Recursive",), path)


def container_security_errors(container: Fields, path: str, spec: Fields) -> Errors:
    """Check the security context of a container."""
    context, path = fields_of(container.get("securityContext")), f"{path}.securityContext"
    yield from _id_errors(context, ("runAsUser", "runAsGroup"), path)
    yield from choice_errors(context, "procMount", ("Default", "Unmasked"), path)
    if context.get("procMount") == "Unmasked" and spec.get("hostUsers") is not False:
        yield invalid(f"{path}.procMount", "Unmasked", "`hostUsers` must be false to use `Unmasked`")
    yield from _seccomp_errors(context, f"{path}.seccompProfile")
    if context.get("allowPrivilegeEscalation") is False:
        words = "cannot set `allowPrivilegeEscalation` to false and"
        if context.get("privileged") is True:
            yield invalid(path, _printed(context), f"{words} `privileged` to true")
        for capability in items_of(fields_of(context.get("capabilities")).get("add")):
            if capability == "CAP_SYS_ADMIN":
                yield invalid(path, _printed(context), f"{words} `capabilities.Add` CAP_SYS_ADMIN")
    yield from _app_armor_errors(context, f"{path}.appArmorProfile")


def _printed(context: Fields) -> Fields:
    parts = {name: go_struct(fields_of(context[name]), _STRUCTS[name]) for name in _STRUCTS if context.get(name)}
    return go_struct({**context, **parts}, _CONTEXT)


def _id_errors(context: Fields, names: tuple[str, ...], path: str) -> Errors:
    for name in names:
        yield from _one_id_errors(context.get(name), f"{path}.{name}")


def _one_id_errors(number: Plain, path: str) -> Errors:
    if isinstance(number, int) and not 0 <= number <= _LARGEST_ID:
        yield invalid(path, number, _WRONG_ID)


def _seccomp_errors(context: Fields, path: str) -> Errors:
    if context.get("seccompProfile") is None:
        return
    profile = fields_of(context["seccompProfile"])
    kind, local = text_of(profile, "type"), profile.get("localhostProfile")
    if not kind:
        yield required(f"{path}.type", "type is required when seccompProfile is set")
    elif kind not in _PROFILE_TYPES:
        yield not_supported(f"{path}.type", kind, _PROFILE_TYPES)
    at = f"{path}.localhostProfile"
    if kind != "Localhost":
        if local is not None:
            words = "can only be set when seccomp type is Localhost"
            yield invalid(at, go_struct(profile, _STRUCTS["seccompProfile"]), words)
    elif local is None:
        yield required(at, "must be set when seccomp type is Localhost")
    else:
        yield from descending_errors(text_of(profile, "localhostProfile"), at)


def _app_armor_errors(context: Fields, path: str) -> Errors:
    if context.get("appArmorProfile") is None:
        return
    profile = fields_of(context["appArmorProfile"])
    kind, local, at = text_of(profile, "type"), profile.get("localhostProfile"), f"{path}.localhostProfile"
    missing = required(at, "must be set when AppArmor type is Localhost")
    if not kind:
        yield required(f"{path}.type", "type is required when appArmorProfile is set")
    elif kind not in _PROFILE_TYPES:
        yield not_supported(f"{path}.type", kind, _PROFILE_TYPES)
    elif kind != "Localhost":
        if local is not None:
            yield invalid(at, local, "can only be set when AppArmor type is Localhost")
    elif not isinstance(local, str):
        yield missing
    else:
        if local != local.strip():
            yield invalid(at, local, "must not be padded with whitespace")
        elif not local:
            yield missing
        if len(local.encode()) > _LONGEST_PROFILE:
            yield too_long(at, _LONGEST_PROFILE)


def _sysctl_errors(context: Fields, path: str, spec: Fields) -> Errors:
    names: set[str] = set()
    for sysctl, at in objects_of(context.get("sysctls"), path):
        name = text_of(sysctl, "name")
        if not name:
            yield required(f"{at}.name")
        elif len(name.encode()) > _LONGEST_SYSCTL or not re.fullmatch(_SYSCTL, name):
            words = f"must have at most {_LONGEST_SYSCTL} characters and match regex {_SYSCTL}"
            yield invalid(f"{at}.name", name, words)
        elif name in names:
            yield duplicate(f"{at}.name", name)
        names.add(name)
        for field, is_shared in (("hostNetwork", _is_of_network(name)), ("hostIPC", _is_of_ipc(name))):
            if is_shared and spec.get(field) is True:
                yield invalid(f"{at}.name", name, f"may not be specified when '{field}' is true")


def _is_of_network(sysctl: str) -> bool:
    return _dotted(sysctl).startswith("net.")


def _is_of_ipc(sysctl: str) -> bool:
    name = _dotted(sysctl)
    return name in _IPC_SYSCTLS or name.startswith("fs.mqueue.")


def _dotted(sysctl: str) -> str:
    """Return the name with dots between its parts; where the first separator is a slash, dots and slashes change."""
    first = re.search(r"[./]", sysctl)
    if first is not None and first.group() == "/":
        return sysctl.translate(str.maketrans("./", "/."))
    return sysctl


def host_user_errors(spec: Fields) -> Errors:
    """Check that a pod with users of its own shares nothing else with the machine."""
    if spec.get("hostUsers") is not False:
        return
    words = "when `hostUsers` is false"
    # Two of the names are upstream's own.
    for field, shown in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
        if spec.get(field) is True:
            yield forbidden(f"spec.{shown}", words)
    for container, path in containers_of(spec):
        if items_of(container.get("volumeDevices")):
            yield forbidden(f"{path}.volumeDevices", words)


def system_errors(spec: Fields, system: str) -> Errors:
    """Check that a pod that names its system has nothing of the other one."""
    contexts = [
        (fields_of(each.get("securityContext")), f"{path}.securityContext") for each, path in containers_of(spec)
    ]
    own = fields_of(spec.get("securityContext"))
    if system == "linux":
        for context, path in ((own, "spec.securityContext"), *contexts):
            if context.get("windowsOptions") is not None:
                yield forbidden(f"{path}.windowsOptions", "windows options cannot be set for a linux pod")
        return
    words = "cannot be set for a windows pod"
    for field in _WINDOWS_POD:
        name = field.removeprefix("securityContext.")
        value = (spec if name == field else own).get(name)
        if value is not None and not (field in _FLAGS and not value):
            yield forbidden(f"spec.{field}", words)
    for context, path in contexts:
        for name in _WINDOWS_CONTAINER:
            if context.get(name) is not None:
                yield forbidden(f"{path}.{name}", words)
