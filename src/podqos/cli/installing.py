"""``podqos … manifests``: print the manifests to run a part of podqos in a cluster."""

from __future__ import annotations

import argparse
import os
import re
import sys
from base64 import b64encode
from typing import TYPE_CHECKING

from podqos.cli.main import EXIT_OK
from podqos.errors import InvalidOption
from podqos.manifest.encoding import json_bytes
from podqos.reading.files import read_bytes
from podqos.serve.settings import AUTHORITY_FILE, CERTIFICATE_FILE, IMAGE, KEY_FILE, NAMESPACE

if TYPE_CHECKING:
    from podqos.serve.installation import Values

_DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def add_installation_options(parser: argparse.ArgumentParser, namespace: str = NAMESPACE) -> None:
    """Declare the options that all parts have."""
    about = f"namespace to install it in (default: {namespace})"
    parser.add_argument("-n", "--namespace", metavar="NAMESPACE", default=namespace, help=about)
    about = "an image that contains podqos, for example one built with `make image`"
    parser.add_argument("--image", metavar="IMAGE", default=IMAGE, help=about)
    parser.add_argument(
        "-o", "--output", metavar="FORMAT", choices=("yaml", "json"), default="yaml", help="yaml or json"
    )


def print_manifests(part: str, arguments: argparse.Namespace, values: Values, policy: str = "") -> int:
    """Print the namespace and everything of a part in it, as YAML or JSON, and return the exit code."""
    from podqos.manifest.strictyaml import read_documents
    from podqos.serve.installation import manifests

    if not _DNS_LABEL.fullmatch(arguments.namespace):
        fix = "use lower case letters, digits and -"
        raise InvalidOption(f"{arguments.namespace!r} is not a valid namespace name", where="--namespace", fix=fix)
    if not re.fullmatch(r"\S+", arguments.image):
        raise InvalidOption(f"{arguments.image!r} is not a valid image", where="--image", fix=f"for example {IMAGE}")
    text = manifests(part, arguments.namespace, {**values, "image": arguments.image}, policy)
    if arguments.output == "json":
        items = [document.value for document in read_documents(text.encode(), 1)]
        text = json_bytes({"apiVersion": "v1", "kind": "List", "items": items}).decode() + "\n"
    print(text, end="")
    if arguments.image == IMAGE:
        print(f"podqos: {IMAGE} is a placeholder: set your image with --image", file=sys.stderr)
    return EXIT_OK


def given_certificate(folder: str) -> dict[str, str]:
    """Read what ``podqos webhook certificate`` wrote, except the CA's key: base64-encoded, as in Secrets."""
    names = {"certificate": CERTIFICATE_FILE, "key": KEY_FILE, "authority": AUTHORITY_FILE}
    return {key: b64encode(read_bytes(os.path.join(folder, name))).decode() for key, name in names.items()}
