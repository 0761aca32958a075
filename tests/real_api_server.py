"""A real API server with its etcd, started by tests where ``KUBEBUILDER_ASSETS`` names a directory that has both."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import time
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from podqos.cluster.kubeconfig import Access, User

ASSETS = os.environ.get("KUBEBUILDER_ASSETS")
writes = pytest.mark.skipif(not ASSETS, reason="no API server to make objects in: set KUBEBUILDER_ASSETS")


class ApiServer:
    """An API server with its etcd, of this test's own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.url = f"https://127.0.0.1:{_free_port()}"

    def __enter__(self) -> ApiServer:  # noqa: PYI034 - once
        self._stack, self._processes = ExitStack(), []
        directory, etcd, peers = self._directory, f"http://127.0.0.1:{_free_port()}", f"http://127.0.0.1:{_free_port()}"
        key = directory / "sa.key"
        subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
        (directory / "tokens").write_text('admin,admin,1,"system:masters"\nlimited,limited,2\n')
        self._start(
            "etcd", f"--data-dir={directory / 'etcd'}", f"--listen-client-urls={etcd}",
            f"--advertise-client-urls={etcd}", f"--listen-peer-urls={peers}", "--unsafe-no-fsync",
        )  # fmt: skip
        self._start(
            "kube-apiserver", f"--etcd-servers={etcd}", f"--cert-dir={directory / 'pki'}", "--bind-address=127.0.0.1",
            f"--secure-port={self.url.rpartition(':')[2]}", "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}", f"--token-auth-file={directory / 'tokens'}",
            "--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount",
        )  # fmt: skip
        deadline = time.monotonic() + 120
        while True:
            try:
                self.call("GET", "/readyz")
                break
            except OSError:
                ended = [each.args[0] for each in self._processes if each.poll() is not None]
                if ended or time.monotonic() > deadline:
                    self._stack.close()
                    logs = {path.name: path.read_text()[-2000:] for path in directory.glob("*.log")}
                    pytest.fail(f"the API server is not ready; ended: {ended}; logs: {logs}")
                time.sleep(0.5)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _start(self, program: str, *arguments: str) -> None:
        log = self._stack.enter_context((self._directory / f"{program}.log").open("wb"))
        process = subprocess.Popen([f"{ASSETS}/{program}", *arguments], stdout=log, stderr=log)
        self._processes.append(process)
        self._stack.callback(process.wait)
        self._stack.callback(process.terminate)

    def access(self, token: str = "admin") -> Access:
        return Access(self.url, ca_file=str(self._directory / "pki" / "apiserver.crt"), user=User(token=token))

    def call(
        self, method: str, path: str, body: object = None, *, token: str = "admin", kind: str = "application/json"
    ) -> bytes:
        """Do what the reader cannot."""
        headers = {"Authorization": f"Bearer {token}", "Content-Type": kind}
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        trust = ssl.create_default_context()
        trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
        request = Request(self.url + path, data, headers, method=method)  # noqa: S310 - our own server
        with urlopen(request, timeout=300, context=trust) as answer:  # noqa: S310 - likewise
            return answer.read()

    def create_pod(self, name: str) -> None:
        container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "100m"}}}
        pod = {"metadata": {"name": name}, "spec": {"containers": [container]}}
        self.call("POST", "/api/v1/namespaces/default/pods", {"apiVersion": "v1", "kind": "Pod", **pod})


def _free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        return listening.getsockname()[1]
