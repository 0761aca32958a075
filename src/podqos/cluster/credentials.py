"""Edge: credentials: headers and client certificate, kept fresh.

A token file is read again when it changes, certificates before every request; an exec plugin runs again when its
credentials expire or the server answers 401. Of several credentials a token counts before a password, and both before
an exec plugin, as in client-go.
"""

from __future__ import annotations

import os
import threading
from base64 import b64encode
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import quote

from podqos.cluster.certificates import valid_until
from podqos.cluster.kubeconfig import Access, as_pem
from podqos.errors import InputError

if TYPE_CHECKING:
    from podqos.cluster.exec_plugin import ExecStatus

_MOST_BYTES = 1 << 20
_NEVER_READ = "never read"


def file_state(path: str) -> object:
    """Return something that differs once a file has changed; None for none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


class Credentials:
    """The credentials of one access. Several threads may use them at once."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._user = user = access.user
        provider = user.auth_provider
        if provider is not None and not (user.exec or user.token or user.token_file or self._has_certificate):
            fix = "use an exec plugin, such as `kubectl oidc-login`"
            raise InputError(f"auth-provider {provider.name} is not supported", where=self._where, fix=fix)
        self._lock = threading.Lock()
        self._printed: ExecStatus | None = None
        self._token_file_state: object = _NEVER_READ
        self._token_in_file = ""

    @property
    def _where(self) -> str:
        return f"user of context {self._access.context}" if self._access.context else "service account"

    @property
    def _has_certificate(self) -> bool:
        return bool(self._user.client_certificate or self._user.client_certificate_data)

    def headers(self) -> list[tuple[str, str]]:
        """Return the headers for authentication and impersonation. Runs the exec plugin if it is due."""
        user = self._user
        extra = [
            (f"Impersonate-Extra-{quote(name.lower(), safe='')}", value)
            for name, values in sorted(user.impersonate_extra.items())
            for value in values
        ]
        headers = [
            ("Authorization", self._authorization()),
            ("Impersonate-User", user.impersonate),
            ("Impersonate-Uid", user.impersonate_uid),
            *(("Impersonate-Group", group) for group in user.impersonate_groups),
            *extra,
        ]
        return [(name, value) for name, value in headers if value]

    def certificate(self) -> str:
        """Return the client certificate with its key, in PEM; empty if there is none."""
        user = self._user
        if self._has_certificate:
            certificate = user.client_certificate_data or as_pem(self._contents(user.client_certificate))
            key = user.client_key_data or (as_pem(self._contents(user.client_key)) if user.client_key else "")
            return f"{certificate}\n{key}\n"
        printed = self._plugin()
        if printed is None or not printed.client_certificate_data:
            return ""
        return f"{printed.client_certificate_data}\n{printed.client_key_data}\n"

    def described(self) -> str:
        """Return which credentials are used, for errors."""
        user = self._user
        if user.token_file:
            return f"the token in {user.token_file}"
        if user.token or user.username:
            return "the token in the kubeconfig" if user.token else f"the password of {user.username}"
        if user.exec is not None:
            return f"from exec plugin {user.exec.command}"
        if not self._has_certificate:
            return "none"
        until = valid_until(self.certificate())
        is_over = until is not None and until < datetime.now(UTC)
        return f"a client certificate that expired on {until:%Y-%m-%d}" if is_over else "a client certificate"

    def refresh(self, rejected: list[tuple[str, str]]) -> bool:
        """Return whether, after a 401 to these headers, there are other credentials to try."""
        if self._runs_plugin:
            authorization = dict(rejected).get("Authorization", "")
            with self._lock:
                # Another thread may have been quicker.
                if self._printed is not None and self._bearer(self._printed.token) == authorization:
                    self._printed = None
            self._plugin()
            return True
        self._token_file_state = _NEVER_READ
        return self.headers() != rejected

    @property
    def _runs_plugin(self) -> bool:
        user = self._user
        return user.exec is not None and not (user.token or user.token_file or user.username)

    def _plugin(self) -> ExecStatus | None:
        if not self._runs_plugin:
            return None
        assert self._user.exec is not None
        from podqos.cluster.exec_plugin import run_plugin

        with self._lock:
            if self._printed is None or self._printed.is_expired(datetime.now(UTC)):
                self._printed = run_plugin(self._user.exec, self._access)
            return self._printed

    def _authorization(self) -> str:
        user = self._user
        token = self._file_token() or user.token
        if token:
            return self._bearer(token)
        if user.username:
            pair = b64encode(f"{user.username}:{user.password}".encode())
            return f"Basic {pair.decode()}"
        printed = self._plugin()
        return self._bearer(printed.token) if printed is not None else ""

    def _bearer(self, token: str) -> str:
        if not token:
            return ""
        if not token.isascii() or not token.isprintable() or " " in token:
            raise InputError("the token contains invalid characters", where=self._where, fix="log in again")
        return f"Bearer {token}"

    def _file_token(self) -> str:
        """Return the token in the file; while it cannot be read, the last token stays valid, as in client-go."""
        path = self._user.token_file
        if not path:
            return ""
        state = file_state(path)
        if state != self._token_file_state:
            try:
                self._token_in_file = self._contents(path).decode(errors="replace").strip() or self._token_in_file
                self._token_file_state = state
            except InputError:
                if not self._token_in_file and not self._user.token:
                    raise
        return self._token_in_file

    def _contents(self, path: str) -> bytes:
        try:
            with open(path, "rb") as file:
                return file.read(_MOST_BYTES)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", where=path, fix="fix the kubeconfig") from None
