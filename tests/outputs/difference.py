"""Show what differs between the recordings of a commit and those of the work tree.

Run ``make golden`` and then ``python tests/outputs/difference.py [COMMIT]``.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from outputs.commands import ROOT
from outputs.recording import FURTHER, RECORDED, Output, written


def _texts(packed: bytes) -> dict[str, str]:
    """Return everything that was recorded, by where it is from."""
    texts = {}
    for line in gzip.decompress(packed).splitlines():
        output = msgspec.json.decode(line, type=Output)
        name = written(output.line)
        texts[name] = f"{output.text.rstrip()}\n(exit {output.code})\n"
        texts.update({f"{name} > {file}": text for file, text in output.files.items()})
    return texts


def differences(before: dict[str, str], after: dict[str, str]) -> Iterator[str]:
    """Yield the lines that differ, with a few around them."""
    for name in dict.fromkeys((*before, *after)):
        texts = [each.get(name, "").splitlines() for each in (before, after)]
        yield from unified_diff(*texts, fromfile=name, tofile=name, lineterm="", n=2)


if __name__ == "__main__":
    commit = sys.argv[1] if len(sys.argv) > 1 else "HEAD"
    for path in (RECORDED, FURTHER):
        shown = ["git", "show", f"{commit}:{path.relative_to(ROOT).as_posix()}"]
        earlier = subprocess.run(shown, cwd=ROOT, capture_output=True, check=True).stdout
        sys.stdout.writelines(f"{each}\n" for each in differences(_texts(earlier), _texts(path.read_bytes())))
