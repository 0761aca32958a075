"""Plain values and JSON texts to the typed model.

msgspec does the work: it builds only what the model declares and checks types on the way, so this is the fast
path of every reading. It stops at the first thing it cannot convert and does not say exactly where; ``examine`` finds
everything that is wrong, with field paths. Nothing here knows about YAML, kinds or positions.
"""

from __future__ import annotations

from functools import cache
from typing import TypeVar

import msgspec

from podqos.errors import InvalidManifest
from podqos.manifest.amounts import decode_hook
from podqos.manifest.plain import Number, Plain, format_path
from podqos.model.pod import Pod

Model = TypeVar("Model")


def convert(value: object, model: type[Model]) -> Model:
    """Return the model of a plain value, or raise ``msgspec.ValidationError``."""
    return msgspec.convert(value, model, dec_hook=decode_hook)


REFUSALS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for a text that it cannot read."""

PLAIN_DECODER = msgspec.json.Decoder(float_hook=Number.read)
"""JSON to plain values."""


@cache
def model_decoder(model: type[Model]) -> msgspec.json.Decoder[Model]:
    """Return the decoder of JSON texts to a model; made on first use, because looking through the types takes time."""
    return msgspec.json.Decoder(model, dec_hook=decode_hook, float_hook=str)


def decode_pod(data: bytes) -> Pod:
    """Return the pod in a JSON text, or raise ``InvalidManifest`` with the field at fault."""
    try:
        pod: Pod = model_decoder(Pod).decode(data)
    except msgspec.ValidationError:
        return convert_pod(PLAIN_DECODER.decode(data))
    except REFUSALS as error:
        raise InvalidManifest(str(error)) from None
    return pod


def convert_pod(value: Plain) -> Pod:
    """Return the pod in a plain value, or raise ``InvalidManifest`` with the field at fault.

    As with objects from an API server, unknown fields are rejected under ``resources`` only.
    """
    try:
        return convert(value, Pod)
    except msgspec.ValidationError:
        pass
    from podqos.manifest.examine import Examination

    examination = Examination(is_live=True)
    cleaned = examination.clean(value, Pod, ())
    for finding in examination.findings:
        raise InvalidManifest(finding.what, where=format_path(finding.path), fix=finding.fix)
    return convert(cleaned, Pod)
