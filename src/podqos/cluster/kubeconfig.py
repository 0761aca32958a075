"""Pure: kubeconfig files: merged as kubectl does, and the access that a context describes.

Of each map (clusters, users, contexts) the first file that has an entry wins, and it wins whole: fields of the same
entry in later files are not mixed in. The first current-context wins. Names of files count from the file they are in.

Sources: Kubernetes v1.36 client-go/tools/clientcmd (loader.go: ClientConfigLoadingRules.Load, ResolveLocalPaths;
client_config.go: ClientConfig; api/v1/types.go).
"""

from __future__ import annotations

import binascii
import posixpath
from base64 import b64decode
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podqos.amounts import listed, nearest
from podqos.errors import InputError
from podqos.manifest.plain import Plain
from podqos.naming import naming

_SHOWN_CONTEXTS = 8


class ClusterEntry(Struct, frozen=True, rename="kebab"):
    """The address of a server, and how to verify it."""

    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""
    disable_compression: bool = False


class ExecVariable(Struct, frozen=True):
    """A variable of an exec plugin's environment."""

    name: str
    value: str = ""


class ExecConfig(Struct, frozen=True, rename="camel"):
    """A program that prints credentials."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[ExecVariable, ...] = ()
    api_version: str = ""
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""
    directory: str = ""
    """The directory of the kubeconfig: a command with a slash is relative to it."""


class AuthProvider(Struct, frozen=True):
    """The predecessor of exec plugins in kubectl."""

    name: str = ""


class User(Struct, frozen=True, rename="kebab"):
    """Credentials and impersonation."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    exec: ExecConfig | None = None
    auth_provider: AuthProvider | None = None
    impersonate: str = msgspec.field(default="", name="as")
    impersonate_uid: str = msgspec.field(default="", name="as-uid")
    impersonate_groups: tuple[str, ...] = msgspec.field(default=(), name="as-groups")
    impersonate_extra: dict[str, tuple[str, ...]] = msgspec.field(default={}, name="as-user-extra")

    def __repr__(self) -> str:
        """Return nothing secret: what is printed in a traceback ends up in logs."""
        return "User(…)"


class Context(Struct, frozen=True):
    """A user, a cluster, and the default namespace."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(Struct, frozen=True):
    name: str = ""
    cluster: ClusterEntry = ClusterEntry()


class _NamedUser(Struct, frozen=True):
    name: str = ""
    user: User = User()


class _NamedContext(Struct, frozen=True):
    name: str = ""
    context: Context = Context()


class _File(Struct, frozen=True, rename="kebab"):
    clusters: tuple[_NamedCluster, ...] = ()
    users: tuple[_NamedUser, ...] = ()
    contexts: tuple[_NamedContext, ...] = ()
    current_context: str = ""


class Access(Struct, frozen=True):
    """Everything needed to reach one API server. File names are absolute, data is decoded."""

    server: str
    """``https://host:port``, perhaps with a path, without a slash at the end."""
    namespace: str = "default"
    context: str = ""
    """Empty inside a cluster."""
    ca_file: str = ""
    ca_data: str = ""
    """Certificates in PEM; they take precedence over the file."""
    is_insecure: bool = False
    """Whether to accept any certificate."""
    tls_server_name: str = ""
    proxy_url: str = ""
    is_compressed: bool = True
    user: User = User()


class Kubeconfig(Struct, frozen=True):
    """All files as one."""

    sources: tuple[str, ...] = ()
    clusters: dict[str, ClusterEntry] = {}
    users: dict[str, User] = {}
    contexts: dict[str, Context] = {}
    current_context: str = ""

    def access(self, context: str | None = None) -> Access:
        """Return the access of a context, by default the current one."""
        where = ", ".join(self.sources)
        name = context or self.current_context
        if not name:
            fix = (
                "choose one with " + naming("context") + f": {_some(self.contexts)}"
                if self.contexts
                else "set KUBECONFIG to a kubeconfig with contexts"
            )
            raise InputError("no current context", where=where, fix=fix)
        chosen = self.contexts.get(name)
        if chosen is None:
            meant = nearest(name, self.contexts)
            hint = f"did you mean {meant}? " if meant else ""
            there = f"the contexts are {_some(self.contexts)}" if self.contexts else "it has no contexts"
            raise InputError(f"no such context: {name!r}", where=where, fix=f"{hint}{there}")
        cluster = self.clusters.get(chosen.cluster)
        if cluster is None:
            raise InputError(f"context {name}: no cluster {chosen.cluster!r}", where=where, fix=_add("clusters"))
        user = self.users.get(chosen.user)
        if user is None:
            if chosen.user:
                raise InputError(f"context {name}: no user {chosen.user!r}", where=where, fix=_add("users"))
            user = User()
        return Access(
            server=_server(cluster, user, where=f"{where}: cluster {chosen.cluster}"),
            namespace=chosen.namespace or "default",
            context=name,
            ca_file=cluster.certificate_authority,
            ca_data=cluster.certificate_authority_data,
            is_insecure=cluster.insecure_skip_tls_verify,
            tls_server_name=cluster.tls_server_name,
            proxy_url=cluster.proxy_url,
            is_compressed=not cluster.disable_compression,
            user=user,
        )


def merge(files: Iterable[tuple[str, bytes]]) -> Kubeconfig:
    """Merge several files, given as names and contents; the first takes precedence."""
    clusters: dict[str, ClusterEntry] = {}
    users: dict[str, User] = {}
    contexts: dict[str, Context] = {}
    current, sources = "", []
    for source, data in files:
        file = _read(source, data)
        sources.append(source)
        for cluster in file.clusters:
            clusters.setdefault(cluster.name, _complete_cluster(cluster, source))
        for user in file.users:
            users.setdefault(user.name, _complete_user(user, source))
        for context in file.contexts:
            contexts.setdefault(context.name, context.context)
        current = current or file.current_context
    return Kubeconfig(tuple(sources), clusters, users, contexts, current)


def _read(source: str, data: bytes) -> _File:
    from podqos.manifest.documents import plain_documents

    documents = plain_documents(source, data)
    if not documents:
        return _File()
    if len(documents) > 1:
        raise InputError(f"{len(documents)} documents", where=source, fix="a kubeconfig must be one document")
    value = documents[0].value
    kind = value.get("kind", "Config") if isinstance(value, dict) else None
    if kind != "Config":
        what = f"a {kind}, no kubeconfig" if isinstance(kind, str) else "not a kubeconfig"
        raise InputError(what, where=source, fix="a kubeconfig starts with apiVersion: v1, kind: Config")
    try:
        return msgspec.convert(_without_nulls(value), _File)
    except msgspec.ValidationError as error:
        raise InputError(_worded(error), where=source, fix="compare it with `kubectl config view`") from None


def _without_nulls(value: Plain) -> Plain:
    """Leave out null fields, as Go does: kubectl writes ``users: null`` for none."""
    if isinstance(value, dict):
        return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value if inner is not None]
    return value


def _worded(error: msgspec.ValidationError) -> str:
    """Return msgspec's message, field first: ``clusters[0].cluster: expected `object`, got `str```."""
    what, _, field = str(error).partition(" - at `$")
    field = field.rstrip("`").lstrip(".")
    what = what[:1].lower() + what[1:]
    return f"{field}: {what}" if field else what


def _complete_cluster(named: _NamedCluster, source: str) -> ClusterEntry:
    cluster = named.cluster
    where = f"{source}: cluster {named.name}"
    return replace(
        cluster,
        certificate_authority=_beside(source, cluster.certificate_authority),
        certificate_authority_data=_decoded(cluster, "certificate_authority_data", where),
    )


def _complete_user(named: _NamedUser, source: str) -> User:
    user = named.user
    where = f"{source}: user {named.name}"
    return replace(
        user,
        client_certificate=_beside(source, user.client_certificate),
        client_certificate_data=_decoded(user, "client_certificate_data", where),
        client_key=_beside(source, user.client_key),
        client_key_data=_decoded(user, "client_key_data", where),
        token_file=_beside(source, user.token_file),
        exec=user.exec and replace(user.exec, directory=posixpath.dirname(source)),
    )


def _beside(source: str, path: str) -> str:
    return posixpath.join(posixpath.dirname(source), path) if path else ""


def _decoded(entry: Struct, field: str, where: str) -> str:
    text: str = getattr(entry, field)
    try:
        return as_pem(b64decode("".join(text.split()), validate=True))
    except (binascii.Error, ValueError):
        what = f"{field.replace('_', '-')} is not valid base64"
        raise InputError(what, where=where, fix="`base64 -w0 FILE` makes it") from None


def as_pem(data: bytes) -> str:
    """Return a text in PEM; comments between its blocks may be in any language, and do not matter."""
    return data.decode("ascii", errors="replace").replace("\N{REPLACEMENT CHARACTER}", "?")


def _server(cluster: ClusterEntry, user: User, where: str) -> str:
    server = cluster.server
    if not server:
        raise InputError("the server is missing", where=where, fix="add server: https://HOST:6443")
    if "://" not in server:  # rest/url_utils.go: DefaultServerUrlFor
        has_authority = cluster.certificate_authority or cluster.certificate_authority_data
        has_certificate = user.client_certificate or user.client_certificate_data
        is_tls = has_authority or has_certificate or cluster.insecure_skip_tls_verify
        server = f"{'https' if is_tls else 'http'}://{server}"
    try:
        parts = urlsplit(server)
        is_complete = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        is_complete = False
    if not is_complete or not server.isascii() or not server.isprintable() or " " in server:
        raise InputError(f"server {server!r} is not a valid address", where=where, fix="write https://HOST:6443")
    return server.rstrip("/")


def _add(section: str) -> str:
    return f"add it under {section}, or list the file that has it in KUBECONFIG"


def _some(contexts: Mapping[str, Context]) -> str:
    """Return the names of contexts for a sentence, not all where there are many."""
    names = sorted(contexts)
    if len(names) > _SHOWN_CONTEXTS:
        names = [*names[:_SHOWN_CONTEXTS], f"{len(names) - _SHOWN_CONTEXTS} more"]
    return listed(names)
