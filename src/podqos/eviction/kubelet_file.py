"""A kubelet's settings from a text, as far as the kubelet would start with them.

What can be told from the settings alone, a soft threshold without a grace period for one, is refused here with its
place in the file; whether they fit a node is for ``placement.allocatable`` to say.
"""

from __future__ import annotations

from podqos.errors import InvalidConfiguration
from podqos.eviction.thresholds import parse_thresholds
from podqos.manifest.kubelet import KubeletSettings, kubelet_settings_in


def read_kubelet(source: str, data: bytes) -> KubeletSettings:
    """Return the one kubelet's settings in a text; ``source`` is the name to report it under."""
    settings = kubelet_settings_in(source, data)
    try:
        check_thresholds(settings)
    except InvalidConfiguration as error:
        raise InvalidConfiguration(error.what, where=f"{source}: {error.where}", fix=error.fix) from None
    return settings


def check_thresholds(settings: KubeletSettings) -> None:
    """Refuse thresholds with which the kubelet does not start; the error names their place in the document."""
    try:
        parse_thresholds(settings.configuration)
    except InvalidConfiguration as error:
        raise InvalidConfiguration(error.what, where=settings.notation.place(error.where), fix=error.fix) from None
