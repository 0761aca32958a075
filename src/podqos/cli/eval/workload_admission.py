"""``podqos eval workload_admission``: what a running API server answers to a new workload."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from podqos.admission.as_written import fields_of, text_of
from podqos.admission.workload_validation import workload_refusal
from podqos.errors import InputError
from podqos.manifest.kinds import POD_HOLDERS

if TYPE_CHECKING:
    from podqos.manifest.plain import Plain

_CREATED = 201


def evaluate(input: dict[str, object]) -> dict[str, object]:  # noqa: A002 - the word of the interface
    """Answer one line of the family ``workload_admission``: the object itself."""
    value = cast("Plain", input)
    kind = text_of(fields_of(value), "kind")
    if kind not in POD_HOLDERS or kind == "Pod":
        kinds = ", ".join(holder for holder in POD_HOLDERS if holder != "Pod")
        raise InputError(f"{kind!r} is not a kind of workload", where="kind", fix=f"use one of {kinds}")
    refusal = workload_refusal(value, kind)
    if refusal is None:
        return {"code": _CREATED, "message": ""}
    return {"code": int(refusal.code), "message": refusal.message}
