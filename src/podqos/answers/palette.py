"""The colours of pictures: a hue per class, a shade per pod.

Blue, orange and magenta work for colour-blind readers too; shades of one class alternate in lightness so that
neighbours differ.
"""

from __future__ import annotations

from podqos.model.pod import QOSClass

SHADES = {
    QOSClass.GUARANTEED: ("#0b4f8a", "#4a9bd1", "#1f77b4", "#7fbbe3", "#2f6396", "#a4cfec"),
    QOSClass.BURSTABLE: ("#c26a05", "#f3ae4e", "#d98520", "#f9cf8d", "#a85a08", "#e89b36"),
    QOSClass.BEST_EFFORT: ("#8e2a6b", "#d377b1", "#b5478f", "#e8a9d1", "#74245a", "#c25a9f"),
}
SYSTEM = "#aab3bf"
KERNEL = "#c62828"
KUBELET = "#00695c"


def shade(qos_class: QOSClass, index: int) -> str:
    """Return the colour of the pod that is number ``index`` of its class."""
    shades = SHADES[qos_class]
    return shades[index % len(shades)]


def is_dark(colour: str) -> bool:
    """Whether white text is easier to read on a colour than black text."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return 299 * red + 587 * green + 114 * blue < 140_000
