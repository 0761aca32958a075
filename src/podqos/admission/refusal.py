"""How the API server rejects an object: HTTP status, message, fields.

Source: Kubernetes v1.36 staging/src/k8s.io/apimachinery/pkg/api/errors/errors.go (NewInvalid, NewForbidden,
NewNotFound), pkg/util/errors/errors.go (aggregates). The texts are part of Kubernetes' interface.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum

from msgspec import Struct

from podqos.admission.field_errors import FieldError
from podqos.model.pod import Pod, Workload


class Code(IntEnum):
    """The HTTP status of a rejection."""

    BAD_REQUEST = 400
    """The object cannot be read."""
    FORBIDDEN = 403
    """A plug-in rejects it."""
    NOT_FOUND = 404
    """Its namespace does not exist."""
    INVALID = 422
    """Its fields are invalid."""
    INTERNAL_ERROR = 500
    """A plug-in fails."""


class Denied(Struct, frozen=True, gc=False):
    """A plug-in's rejection, with its own message."""

    message: str


class MissingObject(Denied, frozen=True, gc=False):
    """The rejection of a pod that names an object which does not exist."""

    kind: str = ""
    name: str = ""


class Failed(Denied, frozen=True, gc=False):
    """A plug-in that fails instead of deciding."""


class Refusal(Struct, frozen=True, gc=False):
    """The API server's response to an object it rejects."""

    code: Code
    message: str
    field_errors: tuple[FieldError, ...] = ()
    denied: Denied | None = None
    """The plug-in's rejection, with its reasons as data if it has any."""
    is_of_holder: bool = False
    """Whether the object around the pod is rejected: the fields at fault are its own, not the pod's."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The paths of the fields at fault, each once, sorted."""
        return tuple(sorted({error.path for error in self.field_errors}))


def forbidden_pod(pod: Pod, denied: Denied) -> Refusal:
    """Return a plug-in's rejection of a pod."""
    return Refusal(Code.FORBIDDEN, f'pods "{_name(pod)}" is forbidden: {denied.message}', denied=denied)


def invalid_pod(pod: Pod, errors: Sequence[FieldError]) -> Refusal:
    """Return validation's rejection of a pod."""
    message = f'Pod "{_name(pod)}" is invalid: {joined(str(error) for error in errors)}'
    return Refusal(Code.INVALID, message, tuple(errors))


def invalid_holder(workload: Workload, errors: Sequence[FieldError]) -> Refusal:
    """Return validation's rejection of an apps/v1 object with a pod template."""
    name = workload.metadata.name or workload.metadata.generate_name
    message = f'{workload.kind}.apps "{name}" is invalid: {joined(str(error) for error in errors)}'
    return Refusal(Code.INVALID, message, tuple(errors), is_of_holder=True)


def joined(messages: Iterable[str]) -> str:
    """Join messages as an aggregate error prints them: each once, in brackets when there are several."""
    unique = list(dict.fromkeys(messages))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"


def _name(pod: Pod) -> str:
    return pod.metadata.name or pod.metadata.generate_name
