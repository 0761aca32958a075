"""What Helm prints of a release: ``helm install --dry-run``, ``helm upgrade --dry-run``, ``helm get all``.

The manifests are in the middle of it, hooks first. Headers, values and notes are not manifests, and notes are seldom
YAML. They become blanks: what is left keeps its lines and offsets.
"""

from __future__ import annotations

import re

_STARTS = (b"NAME: ", b'Release "')
_HEADER = re.compile(rb'\A(?:Release "[^\n]*\n)?NAME: [^\n]*\nLAST DEPLOYED: ')
_MANIFEST = b"\nMANIFEST:\n"
_HOOKS = b"\nHOOKS:\n"
_NOTES = b"\nNOTES:\n"
_VISIBLE = re.compile(rb"[^\n]+")
# What `helm template` begins with.
_SOURCE = re.compile(rb"\A---[ \t]*\n# Source: ")


def only_manifests(text: bytes) -> bytes:
    """Return a text in which all that Helm says about a release is blank; any other text unchanged."""
    is_release = text.startswith(_STARTS) and _HEADER.match(text) is not None
    manifest = text.find(_MANIFEST) if is_release else -1
    if manifest < 0 and _SOURCE.match(text) is None:
        return text
    notes = text.rfind(_NOTES, max(manifest, 0))
    end = len(text) if notes < 0 else notes
    if manifest < 0:
        return text[:end] + _blank(text[end:])
    start = manifest + len(_MANIFEST)
    hooks = text.rfind(_HOOKS, 0, manifest)
    if hooks < 0:
        return _blank(text[:start]) + text[start:end] + _blank(text[end:])
    below = hooks + len(_HOOKS)
    return (
        _blank(text[:below])
        + text[below:manifest]
        + _blank(text[manifest:start])
        + text[start:end]
        + _blank(text[end:])
    )


def _blank(text: bytes) -> bytes:
    return _VISIBLE.sub(lambda visible: b" " * len(visible[0]), text)
