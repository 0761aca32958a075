"""What the API server rejects about fields of a pod that no decision of podqos needs: names, DNS, claims, gates.

Source: Kubernetes v1.36 pkg/apis/core/validation/validation.go (validatePodResourceClaims, validateDNSPolicy,
validatePodDNSConfig, validateReadinessGates, validatePodHostName, ValidateHostAliases, validateFileKeyRefVolumes) and
staging/src/k8s.io/apimachinery/pkg/util/validation/ip.go.
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
from podqos.admission.field_errors import duplicate, forbidden, invalid, not_found, required, too_long
from podqos.admission.names import (
    label_complaints,
    qualified_name_complaints,
    search_domain_complaints,
    subdomain_complaints,
)
from podqos.admission.volume_sources import is_directory
from podqos.manifest.plain import Plain

_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_MOST_SERVERS = 3
_MOST_SEARCHES = 32
_LONGEST_SEARCHES = 2048
_LONGEST_HOST_NAME = 64
_CLAIM: dict[str, tuple[str, Plain]] = {
    "name": ("Name", ""),
    "resourceClaimName": ("ResourceClaimName", None),
    "resourceClaimTemplateName": ("ResourceClaimTemplateName", None),
}


def claim_errors(spec: Fields, *, is_mirror: bool) -> Errors:
    """Check the claims of a pod; the mirror of a static pod has none."""
    names: set[str] = set()
    for claim, path in objects_of(spec.get("resourceClaims"), "spec.resourceClaims"):
        if is_mirror:
            yield forbidden("", "static pods do not support resource claims")
            continue
        name = text_of(claim, "name")
        if not name:
            yield required(f"{path}.name")
        elif name in names:
            yield duplicate(f"{path}.name", name)
        for complaint in label_complaints(name) if name and name not in names else ():
            yield invalid(f"{path}.name", name, complaint)
        names.add(name)
        given = [field for field in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(field) is not None]
        if len(given) > 1:
            words = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            yield invalid(path, go_struct(claim, _CLAIM), words)
        elif not given:
            words = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            yield invalid(path, go_struct(claim, _CLAIM), words)
        for field in given:
            for complaint in subdomain_complaints(text_of(claim, field)):
                yield invalid(f"{path}.{field}", text_of(claim, field), complaint)


# ---- DNS -----------------------------------------------------------------------------------------------------------


def dns_policy_errors(spec: Fields) -> Errors:
    """Check where names are looked up."""
    yield from choice_errors(spec, "dnsPolicy", _DNS_POLICIES, "spec", default="ClusterFirst")


def dns_config_errors(spec: Fields) -> Errors:
    """Check how names are looked up."""
    path, config = "spec.dnsConfig", fields_of(spec.get("dnsConfig"))
    servers, searches = items_of(config.get("nameservers")), items_of(config.get("searches"))
    if spec.get("dnsPolicy") == "None" and spec.get("dnsConfig") is None:
        yield required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
        return
    if spec.get("dnsPolicy") == "None" and not servers:
        words = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        yield required(f"{path}.nameservers", words)
        return
    if len(servers) > _MOST_SERVERS:
        yield invalid(f"{path}.nameservers", servers, f"must not have more than {_MOST_SERVERS} nameservers")
    for index, server in enumerate(servers):
        yield from _address_errors(server, f"{path}.nameservers[{index}]")
    if len(searches) > _MOST_SEARCHES:
        yield invalid(f"{path}.searches", searches, f"must not have more than {_MOST_SEARCHES} search paths")
    if len(" ".join(map(str, searches)).encode()) > _LONGEST_SEARCHES:
        words = f"must not have more than {_LONGEST_SEARCHES} characters (including spaces) in the search list"
        yield invalid(f"{path}.searches", searches, words)
    for index, search in enumerate(searches):
        domain = str(search).removesuffix(".")
        for complaint in search_domain_complaints(domain) if search != "." else ():
            yield invalid(f"{path}.searches[{index}]", domain, complaint)
    for option, at in objects_of(config.get("options"), f"{path}.options"):
        if not text_of(option, "name"):
            yield required(at, "must not be empty")


def _address_errors(value: Plain, path: str) -> Errors:
    from ipaddress import IPv6Address, ip_address

    text = value if isinstance(value, str) else ""
    try:
        address = ip_address("" if "%" in text else text)
    except ValueError:
        yield invalid(path, text, _wrong_address(text))
        return
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        yield invalid(path, text, "must not be an IPv4-mapped IPv6 address")


def _wrong_address(text: str) -> str:
    from ipaddress import ip_address

    try:
        ip_address(re.sub(r"\b0+(?=[0-9])", "", text) if "." in text and "%" not in text else "")
    except ValueError:
        return "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
    return "must not have leading 0s"


# ---- names and gates -----------------------------------------------------------------------------------------------


def readiness_gate_errors(spec: Fields) -> Errors:
    """Check the conditions that a pod waits for before it is ready."""
    for gate, path in objects_of(spec.get("readinessGates"), "spec.readinessGates"):
        for complaint in qualified_name_complaints(text_of(gate, "conditionType")):
            yield invalid(f"{path}.conditionType", text_of(gate, "conditionType"), complaint)


def host_name_override_errors(spec: Fields) -> Errors:
    """Check the name that replaces the one a pod would have for itself."""
    name, path = spec.get("hostnameOverride"), "spec.hostnameOverride"
    if not isinstance(name, str):
        return
    for field in ("setHostnameAsFQDN", "hostNetwork"):
        if spec.get(field) is True:
            yield forbidden(path, f"may not be specified when {field} is true")
    if len(name.encode()) > _LONGEST_HOST_NAME:
        yield too_long(path, _LONGEST_HOST_NAME)
    for complaint in subdomain_complaints(name):
        yield invalid(path, name, complaint)


def host_name_errors(spec: Fields) -> Errors:
    """Check the name that a pod wants to have for itself, and the domain that it is in."""
    for field in ("hostname", "subdomain"):
        name = text_of(spec, field)
        for complaint in label_complaints(name) if name else ():
            yield invalid(f"spec.{field}", name, complaint)


def host_alias_errors(spec: Fields) -> Errors:
    """Check the host aliases of a pod."""
    for alias, path in objects_of(spec.get("hostAliases"), "spec.hostAliases"):
        yield from _address_errors(alias.get("ip"), f"{path}.ip")
        for index, name in enumerate(items_of(alias.get("hostnames"))):
            for complaint in subdomain_complaints(str(name)):
                yield invalid(f"{path}.hostnames[{index}]", str(name), complaint)


def file_key_errors(spec: Fields) -> Errors:
    """Check that variables from a file come from an emptyDir volume of the pod."""
    volumes = {text_of(volume, "name"): volume for volume, _ in objects_of(spec.get("volumes"), "")}
    for container, path in containers_of(spec):
        for variable, at in objects_of(container.get("env"), f"{path}.env"):
            reference = fields_of(variable.get("valueFrom")).get("fileKeyRef")
            if reference is None:
                continue
            name, where = text_of(fields_of(reference), "volumeName"), f"{at}.valueFrom.fileKeyRef.volumeName"
            if name not in volumes:
                yield not_found(where, name)
            elif not is_directory(volumes[name]):
                yield invalid(where, name, "referenced volume must be of type emptyDir")
