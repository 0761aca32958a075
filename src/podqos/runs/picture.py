"""The picture of a node's run as a value, from which ``simulate --svg`` and the page both draw.

Everything that does not depend on how wide a picture is, or which part of the run it shows, is here: the panels in
their order, their heights, scales, lines and words, the rows, and the distances between parts. A renderer turns times
into x, values into y, and finds room for names.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from podqos.sim.series import Column


class LayerKind(StrEnum):
    """What a layer of a stack is."""

    SYSTEM = "system"
    POD = "pod"
    CACHE = "cache"
    DENIED = "denied"


class LineKind(StrEnum):
    """What a line or a label is about, and so how it looks."""

    HARD = "hard"
    SOFT = "soft"
    CAPACITY = "capacity"
    KERNEL = "kernel"
    PODS = "pods"
    AVAILABLE = "available"
    FREE = "free"
    WANTED = "wanted"
    SHARE = "share"


class Tick(Struct, frozen=True, rename="camel"):
    """A value on an axis, in words."""

    value: float
    words: str


class Axis(Struct, frozen=True, rename="camel"):
    """The values of a panel from the bottom to the top. Those below a logarithmic axis are drawn at its bottom."""

    low: float
    high: float
    is_logarithmic: bool
    ticks: tuple[Tick, ...]


class Layer(Struct, frozen=True, rename="camel"):
    """A band of a stack: the sum of ``columns`` of the node's pod number ``series``, or else ``values``."""

    kind: LayerKind
    label: str
    series: int | None = None
    columns: tuple[str, ...] = ()
    """Fields of ``PodSeries``. The last of several is page cache, which is drawn veiled."""
    values: Column = ()


class Level(Struct, frozen=True, rename="camel"):
    """A value that is drawn as a line across the panel."""

    kind: LineKind
    value: float


class Curve(Struct, frozen=True, rename="camel"):
    """A value over time, with gaps where there is none."""

    kind: LineKind
    values: tuple[float | None, ...]
    colour: str | None = None
    times_us: Column = ()
    """Its own times, each of whose values holds until the next; empty: those of the node, and linear between them."""


class Label(Struct, frozen=True, rename="camel"):
    """Words at the right end of a panel. ``y`` is their base line, from the top of the panel at its full height."""

    kind: LineKind
    y: float
    words: str
    colour: str | None = None


class TimeSpan(Struct, frozen=True, rename="camel"):
    """From when to when."""

    from_us: int
    to_us: int


class Row(Struct, frozen=True, rename="camel"):
    """A condition, or a pod, while it lasted."""

    label: str
    spans: tuple[TimeSpan, ...]
    pod: int | None = None
    """Its place in the list of the run's pods; null for a condition."""
    short_of_cpu: tuple[TimeSpan, ...] = ()
    victims: tuple[int, ...] = ()
    """Its ends, by their places in the list of the node's victims."""


class Panel(Struct, frozen=True, rename="camel"):
    """A part of the picture: a chart with an axis, rows, or the kubelet's checks."""

    name: str
    title: str
    note: str
    height: float
    narrow_height: float
    """Its height in a picture that is narrower than ``Measures.narrow``."""
    axis: Axis | None = None
    layers: tuple[Layer, ...] = ()
    levels: tuple[Level, ...] = ()
    curves: tuple[Curve, ...] = ()
    labels: tuple[Label, ...] = ()
    killing_below: float | None = None
    """The kernel kills at values below this."""
    rows: tuple[Row, ...] = ()
    is_hidden: bool = False
    """Nothing happens there: drawn on request only."""
    hidden_as: str = ""
    """What is left out with it, in words."""


class Victim(Struct, frozen=True, rename="camel"):
    """A kill of the node, in the order of ``RunView.kills``."""

    name: str
    alike: int
    """The first victim of the same workload for the same reason, by its place in this list."""


class Measures(Struct, frozen=True, rename="camel"):
    """Distances in pixels."""

    title: float = 24
    """A panel's title, with a note behind it."""
    note_line: float = 15
    """Each line of a note that does not fit there."""
    gap: float = 14
    """Below a panel."""
    narrow: float = 400
    """Panels that are narrower than this are lower, too."""
    row: float = 19
    check_gap: float = 4
    """Checks of the kubelet that are closer than this are drawn as a band."""
    sign_gap: float = 24
    """Victims that are closer than this share a sign."""
    signs: float = 34
    """The height of the signs above the panels."""
    lane: float = 31
    """The height of a victim's name and cause."""
    lanes: int = 4
    """How many names lie above each other at most."""
    line: float = 14
    """The least distance between two labels."""
    name_height: float = 14
    """The least height of a band that has its name in it."""
    name_step: float = 24
    """How far apart places are tried for the name of a band."""
    sign_margin: float = 8
    """How far a name stays away from the sign of a victim."""


class NodePicture(Struct, frozen=True, rename="camel"):
    """The picture of a node."""

    node: str
    panels: tuple[Panel, ...]
    """From the top, with the hidden ones."""
    victims: tuple[Victim, ...]
    measures: Measures = Measures()
