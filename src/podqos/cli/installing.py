"""``podqos … manifests``: print the manifests to run a part of podqos in a cluster."""

from __future__ import annotations

import argparse
import os
import re
import sys
from base64 import b64encode
from collections.abc import Iterable
from typing import TYPE_CHECKING

from podqos.cli.main import EXIT_OK
from podqos.errors import InvalidOption
from podqos.manifest.encoding import json_bytes, manifest_yaml
from podqos.reading.files import read_bytes
from podqos.web.settings import AUTHORITY_FILE, CERTIFICATE_FILE, IMAGE, KEY_FILE, NAMESPACE

if TYPE_CHECKING:
    from podqos.web.installation import Object, ServingCertificate, Settings

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


def settings_of(arguments: argparse.Namespace) -> Settings:
    """Return the settings of the options that all parts share."""
    from podqos.web.installation import Settings

    if not _DNS_LABEL.fullmatch(arguments.namespace):
        fix = "use lower case letters, digits and -"
        raise InvalidOption(f"{arguments.namespace!r} is not a valid namespace name", where="--namespace", fix=fix)
    if not re.fullmatch(r"\S+", arguments.image):
        raise InvalidOption(f"{arguments.image!r} is not a valid image", where="--image", fix=f"for example {IMAGE}")
    return Settings(namespace=arguments.namespace, image=arguments.image)


def print_manifests(settings: Settings, objects_of_it: Iterable[Object], form: str) -> int:
    """Print the namespace and everything in it, as YAML or JSON, and return the exit code."""
    from podqos.web.installation import namespace_object

    objects = [namespace_object(settings), *objects_of_it]
    if form == "json":
        print(json_bytes({"apiVersion": "v1", "kind": "List", "items": objects}).decode())
    else:
        print("---\n".join(map(manifest_yaml, objects)), end="")
    if settings.image == IMAGE:
        print(f"podqos: {IMAGE} is a placeholder: set your image with --image", file=sys.stderr)
    return EXIT_OK


def given_certificate(folder: str) -> ServingCertificate:
    """Read what ``podqos webhook certificate`` wrote, except the CA's key."""
    from podqos.web.installation import ServingCertificate

    texts = (read_bytes(os.path.join(folder, name)) for name in (CERTIFICATE_FILE, KEY_FILE, AUTHORITY_FILE))
    return ServingCertificate(*(b64encode(text).decode() for text in texts))
