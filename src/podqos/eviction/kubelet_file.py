"""A kubelet's settings from a text; settings with which the kubelet would not start are rejected.

What is wrong with the settings alone, such as a soft threshold without a grace period, is reported here with its
position in the file; ``placement.kubelet_start`` checks whether they fit a node.
"""

from __future__ import annotations

from podqos.errors import InvalidConfiguration
from podqos.eviction.kubelet_start import check_settings
from podqos.manifest.kubelet import KubeletSettings, kubelet_settings_in


def read_kubelet(source: str, data: bytes) -> KubeletSettings:
    """Return the one kubelet's settings in a text; ``source`` is the name to report it under."""
    settings = kubelet_settings_in(source, data)
    try:
        check_alone(settings)
    except InvalidConfiguration as error:
        raise InvalidConfiguration(error.what, where=f"{source}: {error.where}", fix=error.fix) from None
    return settings


def check_alone(settings: KubeletSettings) -> None:
    """Refuse settings with which the kubelet starts on no node; the error names their place in the document."""
    try:
        check_settings(settings.configuration)
    except InvalidConfiguration as error:
        where, fix = settings.notation.place(error.where), settings.notation.words(error.fix)
        raise InvalidConfiguration(error.what, where=where, fix=fix) from None
