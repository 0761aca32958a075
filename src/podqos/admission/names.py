"""How names must be spelled: labels, subdomains, qualified names. Each check returns the API server's complaints.

Source: Kubernetes v1.36 staging/src/k8s.io/apimachinery/pkg/util/validation/validation.go.
"""

from __future__ import annotations

import re

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"

_IS_LABEL = re.compile(_LABEL)
_IS_SUBDOMAIN = re.compile(_SUBDOMAIN)
_IS_QUALIFIED = re.compile(_QUALIFIED)

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


def label_complaints(name: str) -> list[str]:
    """Check the name of a container: an RFC 1123 label."""
    return _too_long(name, 63) + ([] if _IS_LABEL.fullmatch(name) else [_WRONG_LABEL])


def subdomain_complaints(name: str) -> list[str]:
    """Check the name of most objects: an RFC 1123 subdomain."""
    return _too_long(name, 253) + ([] if _IS_SUBDOMAIN.fullmatch(name) else [_WRONG_SUBDOMAIN])


def qualified_name_complaints(name: str) -> list[str]:
    """Check the name of a resource: ``name`` or ``sub.domain/name``."""
    parts = name.split("/")
    if len(parts) > 2:
        optional_prefix = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a qualified name {_WRONG_QUALIFIED} {optional_prefix}"]
    complaints = []
    if len(parts) == 2:
        prefix = parts[0]
        if prefix:
            complaints += [f"prefix part {complaint}" for complaint in subdomain_complaints(prefix)]
        else:
            complaints.append("prefix part must be non-empty")
    last = parts[-1]
    if not last:
        complaints.append("name part must be non-empty")
    complaints += [f"name part {complaint}" for complaint in _too_long(last, 63)]
    if not _IS_QUALIFIED.fullmatch(last):
        complaints.append(f"name part {_WRONG_QUALIFIED}")
    return complaints


def _too_long(name: str, longest: int) -> list[str]:
    return [f"must be no more than {longest} characters"] if len(name.encode()) > longest else []
