"""Pure: explains rejected requests: the error in one line, and for a 403 the RBAC that grants permission."""

from __future__ import annotations

import re

import msgspec
from msgspec import Struct

from podqos.cluster.resources import Model, Resource
from podqos.errors import BadAnswer, ClusterError, Forbidden, NotFound, Refused, Unauthorized

GONE = 410
_USER = re.compile(r'User "(?P<server>[^"]*)" cannot|\(user=(?P<kubelet>.*), verb=')
_SERVICE_ACCOUNT = re.compile(r"system:serviceaccount:([^:]+):(.+)")
_ANONYMOUS = "system:anonymous"
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9:.@_-]+")
_SHOWN_CHARACTERS = 200


class RBACQuestion(Struct, frozen=True):
    """A request in RBAC's terms: list pods in API group "" in a namespace."""

    verb: str
    resource: str
    """With its subresource: ``nodes/proxy``; or a path of the server's own: ``/version``."""
    group: str = ""
    namespace: str = ""

    def __str__(self) -> str:
        """Return ``list pods in namespace shop``."""
        named = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {named}{f' in namespace {self.namespace}' if self.namespace else ''}"


def question(verb: str, resource: Resource[Model], namespace: str = "", subresource: str = "") -> RBACQuestion:
    """Return the request for a resource."""
    plural = f"{resource.plural}/{subresource}" if subresource else resource.plural
    return RBACQuestion(verb, plural, resource.group, namespace)


class ServerStatus(Struct, frozen=True):
    """The API server's own words for why not (meta/v1 Status)."""

    kind: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    error: str = ""
    """The message, if Prometheus rejects a query."""


_STATUS_DECODER = msgspec.json.Decoder(ServerStatus)


def status_of(code: int, data: bytes) -> ServerStatus:
    """Return the status of a response; text that is not a Status, such as a proxy's, becomes the message."""
    try:
        status = _STATUS_DECODER.decode(data)
        if status.kind == "Status" or status.error:
            return ServerStatus(
                status.kind, as_line(status.message or status.error), status.reason, status.code or code
            )
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    text = as_line(data[: 4 * _SHOWN_CHARACTERS].decode(errors="replace"))[:_SHOWN_CHARACTERS]
    is_page = text.startswith("<")  # some proxy's
    return ServerStatus("", "" if is_page else text, "", code)


def as_line(text: str) -> str:
    """Return a text on one line, without control characters."""
    return "".join(each if each.isprintable() else "?" for each in " ".join(text.split()))


def refusal(asked: RBACQuestion | None, status: ServerStatus, where: str, *, identity: str = "") -> ClusterError:
    """Return the error for a rejected request; ``identity`` says which credentials were used, if known."""
    what = f"cannot {asked}" if asked is not None else "cannot be read"
    code, said = status.code, status.message
    if code == 401:
        fix = "log in again" if not identity else f"log in again; the credentials were {identity}"
        return Unauthorized(f"{what}: 401 Unauthorized", status=code, where=where, fix=fix, said=said)
    if code == 403:
        user = _USER.search(said)
        name = user[user.lastgroup or 0] if user is not None else ""
        if name == _ANONYMOUS:
            # Rights for it would be rights for everyone who reaches the server.
            return Forbidden(
                f"{what}: not logged in (system:anonymous)",
                where=where,
                fix=f"log in; the credentials were {identity or 'none'}",
            )
        by = f" as {name}" if name else ""
        reason = "" if name else f": {said or '403 Forbidden'}"
        role = role_for(asked, name) if asked is not None else ""
        fix = "the RBAC below grants this permission" if role else ""
        return Forbidden(f"{what}{by}{reason}", where=where, fix=fix, role=role, user=name, said=said)
    if code == 404:
        return NotFound(f"{what}: {said or '404 Not Found'}", status=code, where=where)
    if not 400 <= code < 600:
        return BadAnswer(f"{what}: HTTP status {code}", where=where, fix="is it an API server?")
    return Refused(f"{what}: {code} {said}".rstrip(), status=code, where=where, said=said)


def role_for(asked: RBACQuestion, user: str) -> str:
    """Return the role that allows a request, and its binding to a user, as YAML."""
    scope = "" if asked.namespace else "Cluster"
    of_group = f".{asked.group}" if asked.group else ""
    name = f"podqos-{asked.verb}-{asked.resource.strip('/').replace('/', '-')}{of_group}"
    inside = f", namespace: {_quoted(asked.namespace)}" if asked.namespace else ""
    # Its own for each user: what is applied for one must not take it from another.
    binding = _quoted(f"{name}:{_NOT_IN_NAMES.sub('-', user)}" if user else name)
    account = _SERVICE_ACCOUNT.fullmatch(user)
    if account is not None:
        subject = f"{{kind: ServiceAccount, namespace: {_quoted(account[1])}, name: {_quoted(account[2])}}}"
    else:
        subject = f"{{kind: User, apiGroup: rbac.authorization.k8s.io, name: {_quoted(user or 'YOUR USER')}}}"
    verbs = ", ".join(["get", "list", "watch"] if asked.verb in {"list", "watch"} else [asked.verb])
    what = f"apiGroups: [{_quoted(asked.group)}]\n  resources: [{asked.resource}]"
    if asked.resource.startswith("/"):
        what = f"nonResourceURLs: [{asked.resource}]"
    return f"""\
apiVersion: rbac.authorization.k8s.io/v1
kind: {scope}Role
metadata: {{name: {name}{inside}}}
rules:
- {what}
  verbs: [{verbs}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {scope}RoleBinding
metadata: {{name: {binding}{inside}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {scope}Role, name: {name}}}
subjects:
- {subject}
"""


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()
