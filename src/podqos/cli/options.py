"""Options that several commands share, spelled and explained the same everywhere."""

from __future__ import annotations

import argparse
import sys

from podqos.cli.inputs import STDIN, find_files
from podqos.errors import InputError, InvalidOption
from podqos.model.profile import NEWEST


def add_filename_option(parser: argparse.ArgumentParser) -> None:
    """Declare ``-f``, spelled as kubectl spells it."""
    parser.add_argument(
        "-f",
        "--filename",
        dest="files",
        metavar="FILE|DIR|-",
        action="append",
        help="manifests: a file, a directory (all YAML and JSON below it), or - for standard input; may be repeated",
    )


def add_version_option(parser: argparse.ArgumentParser) -> None:
    """Declare ``--kubernetes-version``."""
    newest = ".".join(map(str, NEWEST))
    parser.add_argument(
        "--kubernetes-version", metavar="X.Y", default=newest, help=f"whose rules to use (default: {newest})"
    )


def add_schema_option(parser: argparse.ArgumentParser) -> None:
    """Declare ``--schema``."""
    parser.add_argument("--schema", action="store_true", help="print the JSON Schema of -o json and exit")


def manifest_files(given: list[str] | None, verb: str) -> list[str]:
    """Return the files that ``-f`` names; without it standard input is read, unless a person sits there."""
    if not given:
        if sys.stdin.isatty():
            raise InvalidOption(f"nothing to {verb}", fix="name manifests with -f FILE|DIR, or pipe them in with -f -")
        given = [STDIN]
    return existing_files(given)


def existing_files(given: list[str]) -> list[str]:
    """Return the files that an option names; a directory without manifests is an error."""
    files = list(find_files(given))
    if not files:
        raise InputError("no YAML or JSON files there", where=", ".join(given), fix="name a directory of manifests")
    return files
