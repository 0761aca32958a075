"""Write what krew installs ``kubectl podqos`` from, beside the wheel of a release: ``tools/krew.py dist``.

The archive holds the wheel and a launcher that runs it with uv or pipx, which bring what it depends on: one archive for
all machines with a Python. The manifest has the archive's checksum, for the index of krew.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ARCHIVE = "kubectl-podqos.tar.gz"
MANIFEST = "podqos.yaml"

LAUNCHER = """#!/bin/sh
# kubectl runs this as `kubectl podqos`.
here=$(dirname -- "$(readlink -f -- "$0")")
for wheel in "$here"/podqos-*.whl; do :; done
if command -v uv >/dev/null 2>&1; then
    exec uv tool run --quiet --from "$wheel" kubectl-podqos "$@"
elif command -v pipx >/dev/null 2>&1; then
    exec pipx run --spec "$wheel" kubectl-podqos "$@"
fi
echo "kubectl podqos: error: neither uv nor pipx is there to run it (install one, and Python 3.11 or newer)" >&2
exit 3
"""

_PLUGIN = """apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: podqos
spec:
  version: v{version}
  homepage: {url}
  shortDescription: Which pod dies first when a node runs out of memory
  description: |
    Explains the QoS class of pods, ranks the pods of a node in the orders in which
    the kubelet evicts and the kernel kills them, checks workloads and whole clusters
    for what will fail when memory runs short, and says which lines change it.
    It only reads.
  caveats: |
    Needs Python 3.11 or newer, and uv or pipx to run it.
  platforms:
  - selector:
      matchExpressions:
      - key: os
        operator: In
        values: [darwin, linux]
    uri: {url}/releases/download/v{version}/{archive}
    sha256: {sha256}
    bin: kubectl-podqos
    files:
    - from: "*"
      to: .
"""


def archive(wheel: Path) -> bytes:
    """Return the archive; the same wheel gives the same bytes."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, data, mode in (
            ("kubectl-podqos", LAUNCHER.encode(), 0o755),
            ("LICENSE", (ROOT / "LICENSE").read_bytes(), 0o644),
            (wheel.name, wheel.read_bytes(), 0o644),
        ):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), mode
            tar.addfile(entry, io.BytesIO(data))
    return gzip.compress(packed.getvalue(), mtime=0)


def manifest(version: str, sha256: str) -> str:
    """Return the manifest of a version whose archive has this checksum."""
    (url,) = re.findall(r'^PROJECT_URL = "(.+)"$', (ROOT / "src/podqos/version.py").read_text(), re.MULTILINE)
    return _PLUGIN.format(version=version, url=url, archive=ARCHIVE, sha256=sha256)


def main(directory: str = "dist") -> str:
    """Write archive and manifest; return an error message, or nothing."""
    wheels = list(Path(directory).glob("podqos-*.whl"))
    if len(wheels) != 1:
        return f"{directory} has {len(wheels)} wheels of podqos, not one: run `make dist`"
    data = archive(wheels[0])
    Path(directory, ARCHIVE).write_bytes(data)
    text = manifest(wheels[0].name.split("-")[1], hashlib.sha256(data).hexdigest())
    Path(directory, MANIFEST).write_text(text)
    return ""


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]) or 0)
