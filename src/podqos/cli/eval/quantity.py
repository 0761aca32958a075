"""``podqos eval quantity``: parsing, printing, rounding and arithmetic of one or two amounts."""

from __future__ import annotations

from podqos.errors import InvalidQuantity
from podqos.model.quantity import Quantity


def evaluate(input: dict[str, object]) -> dict[str, object]:  # noqa: A002 - the word of the interface
    """Answer one line of the family ``quantity``."""
    if "string" in input:
        return _parsed(str(input["string"]))
    a = Quantity.parse(str(input["a"]))
    match input["op"]:
        case "roundUpMilli":
            return _described(a.rounded_up_to_milli())
        case "add":
            return _described(a + Quantity.parse(str(input["b"])))
        case "sub":
            return _described(a - Quantity.parse(str(input["b"])))
        case "cmp":
            b = Quantity.parse(str(input["b"]))
            return {"cmp": (a > b) - (a < b)}
        case operation:
            raise ValueError(f"unknown operation {operation!r}")


def _parsed(text: str) -> dict[str, object]:
    from_json = _from_json(text)
    try:
        return _described(Quantity.parse(text)) | {"fromJSONString": from_json}
    except InvalidQuantity as error:
        return {"ok": False, "error": error.what, "fromJSONString": from_json}


def _from_json(text: str) -> dict[str, object]:
    try:
        return _described(Quantity.from_json(text))
    except InvalidQuantity as error:
        return {"ok": False, "error": error.what}


def _described(quantity: Quantity) -> dict[str, object]:
    return {
        "ok": True,
        "string": str(quantity),
        "canonical": quantity.canonical(),
        "value": quantity.value,
        "milliValue": quantity.milli_value,
        "sign": quantity.sign,
        "format": quantity.format,
    }
