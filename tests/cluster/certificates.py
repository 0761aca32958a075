"""Certificates for these tests, made by the openssl program."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest


class Authority:
    """A certificate authority of the tests' own, and the certificates it signs."""

    def __init__(self, directory: Path, name: str = "test authority") -> None:
        if shutil.which("openssl") is None:
            pytest.skip("there is no openssl to make certificates with")
        self._directory = directory
        self._signed: dict[tuple[str, str, int], tuple[Path, Path]] = {}
        directory.mkdir(exist_ok=True)
        self.certificate = directory / "ca.crt"
        self._key = directory / "ca.key"
        self._run(
            "req", "-x509", *_KEY, "-keyout", str(self._key), "-out", str(self.certificate), "-days", "2",
            "-subj", f"/CN={name}", "-addext", "basicConstraints=critical,CA:TRUE",
        )  # fmt: skip

    def sign(self, name: str, *, hosts: str = "IP:127.0.0.1", days: int = 2) -> tuple[Path, Path]:
        """Return certificate and key for a name; a negative number of days is how long it has been expired."""
        known = self._signed.get((name, hosts, days))
        if known is not None:
            return known
        stem = f"{name}-{len(self._signed)}"
        certificate, key = self._directory / f"{stem}.crt", self._directory / f"{stem}.key"
        request, extensions = self._directory / f"{stem}.csr", self._directory / f"{stem}.ext"
        extensions.write_text(f"subjectAltName={hosts}\n")
        self._run("req", *_KEY, "-keyout", str(key), "-out", str(request), "-subj", f"/CN={name}")
        self._run(
            "x509", "-req", "-in", str(request), "-CA", str(self.certificate), "-CAkey", str(self._key),
            "-CAcreateserial", "-days", str(days), "-extfile", str(extensions), "-out", str(certificate),
        )  # fmt: skip
        self._signed[name, hosts, days] = certificate, key
        return certificate, key

    def serving(self, name: str = "server", *, clients: bool = False, **signing: object) -> ssl.SSLContext:
        """Return how a server of that name speaks TLS; with ``clients`` it demands a certificate of this authority."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.sign(name, **signing))  # type: ignore[arg-type]
        if clients:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.certificate)
        return context

    def _run(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)


_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
