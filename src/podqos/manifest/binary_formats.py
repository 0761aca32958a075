"""What a file is that is not text, by its beginning: the one table for logs, manifests and the page.

Which command converts such a file is up to whoever asked for a log, a manifest or a page.
"""

from __future__ import annotations

HEAD_BYTES = 4096
"""As much of a file as is looked at."""
GZIP = "compressed with gzip"
XZ = "compressed with xz"
ZSTD = "compressed with zstd"
BZIP2 = "compressed with bzip2"
ZIP = "a zip archive"
WORKBOOK = "an Office document"
TAR = "a tar archive"
PDF = "a PDF"
JOURNAL = "a journald file"
CRASH_DUMP = "a kernel crash dump"
OTHER = "binary data"
_BY_MAGIC = {
    b"\x1f\x8b": GZIP,
    b"\xfd7zXZ\0": XZ,
    b"\x28\xb5\x2f\xfd": ZSTD,
    b"BZh": BZIP2,
    b"PK\x03\x04": ZIP,
    b"\xd0\xcf\x11\xe0": WORKBOOK,
    b"7z\xbc\xaf\x27\x1c": "a 7-Zip archive",
    b"%PDF-": PDF,
    b"LPKSHHRH": JOURNAL,
    b"KDUMP  ": CRASH_DUMP,
    b"\x89PNG": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"GIF8": "a GIF picture",
    b"\x7fELF": "a program or a core dump",
    b"\xca\xfe\xba\xbe": "a compiled program",
    b"\0asm": "a compiled program",
    b"JAVA PROFILE": "a Java heap dump",
    b"SQLite format 3": "a SQLite database",
}
_LATER = ((257, b"ustar", TAR), (8, b"WEBP", "a WebP picture"), (4, b"ftyp", "a video"))
"""Formats that are recognised further on."""
_IN_OFFICE = (b"[Content_Types].xml", b"mimetypeapplication/vnd.oasis")
_TEXT_CONTROLS = b"\t\n\r\f\x1b"
_CONTROLS = bytes(code for code in range(1, 32) if code not in _TEXT_CONTROLS)
_LEAST_ODD = 8
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


def binary_format(head: bytes) -> str:
    """Return what a file is by its beginning; empty for text."""
    head = head[:HEAD_BYTES]
    for magic, name in _BY_MAGIC.items():
        if head.startswith(magic):
            return WORKBOOK if name == ZIP and any(mark in head[:200] for mark in _IN_OFFICE) else name
    for offset, magic, name in _LATER:
        if head.startswith(magic, offset):
            return name
    return OTHER if is_binary(head) else ""


def is_picture(name: str) -> bool:
    """Whether a format is one of pictures, which may show a log."""
    return name.endswith(" picture")


def is_binary(head: bytes) -> bool:
    """Whether a beginning is not text.

    Zeros alone prove nothing: a machine that crashes leaves them in its logs. Nor do bytes that are not UTF-8, which
    older encodings have.
    """
    head = head[:HEAD_BYTES]
    if head.startswith(_UTF_16):
        return False
    rest = head.replace(b"\0", b"")
    odd = len(rest) - len(rest.translate(None, _CONTROLS))
    if len(rest) < len(head):
        odd += rest.decode(errors="replace").count("\ufffd")
    return odd >= _LEAST_ODD and odd * 10 > len(rest)
