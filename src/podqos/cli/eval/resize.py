"""``podqos eval resize``: what a running API server makes of an in-place resize."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from podqos.admission.decoding import read_pod
from podqos.admission.refusal import Refusal
from podqos.admission.resize import resize
from podqos.cli.eval.admission import policies_of, refused
from podqos.cli.eval.resources import pod_of, resources_by_name

if TYPE_CHECKING:
    from podqos.manifest.plain import Plain


def evaluate(input: dict[str, object]) -> dict[str, object]:  # noqa: A002 - the word of the interface
    """Answer one line of the family ``resize``."""
    new = read_pod(cast("Plain", input["resized"]))
    if isinstance(new, Refusal):
        return refused(new)
    admission = resize(pod_of(input["stored"]), new, policies_of(input))
    if admission.refusal is not None:
        return refused(admission.refusal)
    return {"allowed": True, "resources": resources_by_name(admission.pod, str)}
