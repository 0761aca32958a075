"""Edge: programs that print credentials, as a kubeconfig names them (``users[].user.exec``).

Sources: Kubernetes v1.36 client-go/plugin/pkg/client/auth/exec/exec.go, pkg/apis/clientauthentication/v1.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from shutil import which
from typing import IO

import msgspec
from msgspec import Struct

from podqos.cluster.kubeconfig import Access, ExecConfig
from podqos.errors import ClusterError, InputError
from podqos.manifest.documents import plain_documents

_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_MOST_BYTES = 1 << 20
SECONDS = 120.0
"""A plugin that asks its user to log in takes a while; one that hangs must not block forever."""


class ExecStatus(Struct, frozen=True, rename="camel"):
    """The credentials."""

    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None

    def __repr__(self) -> str:
        """Return nothing secret."""
        return "ExecStatus(…)"

    def is_expired(self, now: datetime) -> bool:
        """Whether they have expired."""
        expiry = self.expiration_timestamp
        if expiry is None:
            return False
        return now >= (expiry if expiry.tzinfo else expiry.replace(tzinfo=UTC))


class _ExecCredential(Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: ExecStatus | None = None


def run_plugin(plugin: ExecConfig, access: Access, *, seconds: float = SECONDS) -> ExecStatus:
    """Return the credentials that a plugin prints."""
    where = f"exec plugin {plugin.command}"
    if plugin.api_version not in _VERSIONS:
        what = f"apiVersion {plugin.api_version or 'missing'}"
        raise InputError(what, where=where, fix=f"write {_VERSIONS[0]}, and update the plugin if it cannot")
    is_interactive = plugin.interactive_mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
    if plugin.interactive_mode == "Always" and not is_interactive:
        raise ClusterError(
            "needs a terminal (interactiveMode: Always)", where=where, fix="log in from a terminal first"
        )
    environment = {**os.environ, **{variable.name: variable.value for variable in plugin.env}}
    environment["KUBERNETES_EXEC_INFO"] = _exec_info(plugin, access, is_interactive)
    command = plugin.command
    if os.path.dirname(command):
        command = os.path.join(plugin.directory, command)
    if sys.platform == "win32":
        command = which(command) or command  # Windows itself would find .exe only
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as complaints:
        try:
            # Its output goes to files, not pipes: children that it leaves behind cannot hold us up.
            process = subprocess.Popen(  # noqa: S603 - that program is what the kubeconfig asks for
                [command, *plugin.args],
                env=environment,
                stdin=None if is_interactive else subprocess.DEVNULL,
                stdout=output,
                stderr=None if is_interactive else complaints,
            )
        except (OSError, ValueError) as error:
            reason = "not found" if isinstance(error, FileNotFoundError) else f"cannot start: {error}"
            hint = " ".join(plugin.install_hint.split()) or "install it, or fix users[].user.exec.command"
            raise ClusterError(reason, where=where, fix=hint) from None
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            what = f"no response within {seconds:g} s"
            raise ClusterError(what, where=where, fix="run it by hand to see what it waits for") from None
        except BaseException:
            process.kill()
            process.wait()
            raise
        printed = _start_of(output)
        if code:
            said = _start_of(complaints).decode(errors="replace").strip().splitlines()
            reason = f": {said[-1].strip()}" if said else ""
            raise ClusterError(f"failed with exit code {code}{reason}", where=where, fix="log in again")
    return _credentials(printed, plugin, where)


def _start_of(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read(_MOST_BYTES)


def _exec_info(plugin: ExecConfig, access: Access, is_interactive: bool) -> str:
    """Return a plugin's input: the version to answer in, whether it may prompt, and the cluster if it wants that."""
    spec: dict[str, object] = {"interactive": is_interactive}
    if plugin.provide_cluster_info:
        cluster = {
            "server": access.server,
            "tls-server-name": access.tls_server_name,
            "insecure-skip-tls-verify": access.is_insecure,
            "certificate-authority-data": _authority(access),
            "proxy-url": access.proxy_url,
        }
        spec["cluster"] = {name: value for name, value in cluster.items() if value}
    info = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    return msgspec.json.encode(info).decode()


def _authority(access: Access) -> bytes:
    """Return the CA in PEM; msgspec writes bytes in base64."""
    if access.ca_data or not access.ca_file:
        return access.ca_data.encode()
    try:
        with open(access.ca_file, "rb") as file:
            return file.read(_MOST_BYTES)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=access.ca_file) from None


def _credentials(printed: bytes, plugin: ExecConfig, where: str) -> ExecStatus:
    fix = "run it by hand: it must print an ExecCredential"
    try:
        documents = plain_documents(where, printed)
        answer = msgspec.convert(documents[0].value if documents else None, _ExecCredential, strict=False)
    except (InputError, msgspec.ValidationError):
        raise ClusterError("its output is not an ExecCredential", where=where, fix=fix) from None
    if answer.kind != "ExecCredential" or answer.api_version != plugin.api_version:
        what = f"it printed {answer.kind or 'something'} of {answer.api_version or 'no version'}"
        raise ClusterError(what, where=where, fix=f"it must print an ExecCredential of {plugin.api_version}")
    status = answer.status or ExecStatus()
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise ClusterError("it printed only one of certificate and key", where=where, fix=fix)
    if not status.token and not status.client_certificate_data:
        raise ClusterError("it printed neither a token nor a certificate", where=where, fix=fix)
    return status
