"""How names must be spelled: DNS labels, subdomains, keys and values of labels. Each check returns messages.

Source: Kubernetes v1.36 staging/src/k8s.io/apimachinery/pkg/util/validation/validation.go and pkg/api/validate/content;
staging/src/k8s.io/apiserver/pkg/storage/names/generate.go.
"""

from __future__ import annotations

import re

from podqos.model.pod import ObjectMeta

_GENERATED = "xxxxx"
_LONGEST_PREFIX = 58
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"

_IS_LABEL = re.compile(_LABEL)
_IS_SUBDOMAIN = re.compile(_SUBDOMAIN)
_LABEL_VALUE = f"({_QUALIFIED})?"
_IS_QUALIFIED = re.compile(_QUALIFIED)
_IS_LABEL_VALUE = re.compile(_LABEL_VALUE)

_ENDS = "and must start and end with an alphanumeric character"
_WRONG_LABEL = (
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ENDS} "
    f"(e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_WRONG_SUBDOMAIN = (
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', {_ENDS} "
    f"(e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_WRONG_QUALIFIED = (
    f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS} "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_QUALIFIED}')"
)

_WRONG_LABEL_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    f"{_ENDS} (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '{_LABEL_VALUE}')"
)


def given_name(metadata: ObjectMeta) -> str:
    """Return the name of a new object; in a generated one, ``xxxxx`` stands for what is random."""
    if metadata.name or not metadata.generate_name:
        return metadata.name
    return metadata.generate_name[:_LONGEST_PREFIX] + _GENERATED


def label_complaints(name: str) -> list[str]:
    """Check the name of a container: an RFC 1123 label."""
    complaints = _too_long(name, 63, "characters")
    if not _IS_LABEL.fullmatch(name):
        complaints.append("must not contain dots" if _IS_SUBDOMAIN.fullmatch(name) else _WRONG_LABEL)
    return complaints


def subdomain_complaints(name: str) -> list[str]:
    """Check the name of most objects: an RFC 1123 subdomain."""
    return _subdomain_complaints(name, "characters")


def long_name_complaints(name: str) -> list[str]:
    """Check the same where upstream counts bytes: the name of a ReplicationController."""
    return _subdomain_complaints(name, "bytes")


def _subdomain_complaints(name: str, unit: str) -> list[str]:
    return _too_long(name, 253, unit) + ([] if _IS_SUBDOMAIN.fullmatch(name) else [_WRONG_SUBDOMAIN])


def label_prefix_complaints(name: str) -> list[str]:
    """Check a label that something may follow: it may end in a dash."""
    return label_complaints(_masked(name))


def prefix_complaints(name: str) -> list[str]:
    """Check a subdomain that something may follow: it may end in a dash."""
    return subdomain_complaints(_masked(name))


def _masked(name: str) -> str:
    # Upstream takes off one more than the dash.
    return name[:-2] + "a" if len(name) > 1 and name.endswith("-") else name


def qualified_name_complaints(name: str) -> list[str]:
    """Check the key of a label, or the name of a resource: ``name`` or ``sub.domain/name``."""
    parts = name.split("/")
    if len(parts) > 2:
        optional_prefix = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_WRONG_QUALIFIED} {optional_prefix}"]
    complaints = []
    if len(parts) == 2:
        prefix = parts[0]
        if prefix:
            complaints += [f"prefix part {complaint}" for complaint in _subdomain_complaints(prefix, "bytes")]
        else:
            complaints.append("prefix part must be non-empty")
    last = parts[-1]
    if not last:
        complaints.append("name part must be non-empty")
    complaints += [f"name part {complaint}" for complaint in _too_long(last, 63)]
    if not _IS_QUALIFIED.fullmatch(last):
        complaints.append(f"name part {_WRONG_QUALIFIED}")
    return complaints


def label_value_complaints(value: str) -> list[str]:
    """Check the value of a label: empty, or spelled like the name of one."""
    return _too_long(value, 63) + ([] if _IS_LABEL_VALUE.fullmatch(value) else [_WRONG_LABEL_VALUE])


def _too_long(name: str, longest: int, unit: str = "bytes") -> list[str]:
    """Complain about a name with too many bytes; some of upstream's messages call them characters."""
    return [f"must be no more than {longest} {unit}"] if len(name.encode()) > longest else []
