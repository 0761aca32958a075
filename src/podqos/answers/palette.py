"""The colours of pictures: a hue per class, a shade per workload.

Blue, orange and purple work for colour-blind readers too, and each shade stands out from a light and from a dark page.
A pod's colour depends on its name and class alone, so that it is the same in every picture, every view and every run.
``viewer/src/app/colours.ts`` does the same for the page; ``tests/browser/test_colours.py`` holds the two equal.
"""

from __future__ import annotations

import re

from podqos.model.pod import QOSClass

# fmt: off
SHADES = {
    QOSClass.GUARANTEED: (
        "#026d8e", "#1666aa", "#3a84ca", "#0b8db6", "#4a5bac", "#6679cd",
        "#11a7d7", "#549de5", "#7d92e8", "#43c4f5", "#76bafe", "#9bb0fe",
    ),
    QOSClass.BURSTABLE: (
        "#9a4900", "#8b5505", "#b36e00", "#c3610d", "#7d5e01", "#a17a00",
        "#df7a32", "#d2840b", "#be9106", "#fe9652", "#f2a036", "#deac22",
    ),
    QOSClass.BEST_EFFORT: (
        "#7d45a2", "#8d3e90", "#ad5cb0", "#9c63c2", "#99387b", "#ba5799",
        "#b57bdd", "#c775c9", "#d56fb2", "#d197fb", "#e590e7", "#f48bcf",
    ),
}
# fmt: on
SYSTEM = "#aab3bf"
KERNEL = "#c62828"
KUBELET = "#00695c"

_RANDOM = "[bcdfghjklmnpqrstvwxz2456789]"
_REPLICA = re.compile(rf"(?:-(?:{_RANDOM}{{6,10}}-{_RANDOM}{{5}}|{_RANDOM}{{5}}|[0-9]+))?(?:-r[0-9]+)?$")
"""What controllers add to the name of a replica, and a simulation to that of its replacement."""
_FNV_OFFSET, _FNV_PRIME = 0x811C9DC5, 0x01000193


def shade(qos_class: QOSClass, pod: str) -> str:
    """Return the colour of a pod, named ``namespace/name``; replicas of a workload share it."""
    shades = SHADES[qos_class]
    return shades[_hash(_REPLICA.sub("", pod)) % len(shades)]


def _hash(text: str) -> int:
    """Return the FNV-1a hash of a text, the same in every process and in the page."""
    value = _FNV_OFFSET
    for byte in text.encode():
        value = ((value ^ byte) * _FNV_PRIME) & 0xFFFFFFFF
    return value >> 16 ^ value & 0xFFFF


def class_colour(qos_class: QOSClass) -> str:
    """Return the colour that stands for a class as a whole."""
    return SHADES[qos_class][2]


def is_dark(colour: str) -> bool:
    """Whether white text is easier to read on a colour than black text."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return 299 * red + 587 * green + 114 * blue < 140_000
