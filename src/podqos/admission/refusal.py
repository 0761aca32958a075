"""How the API server rejects an object: HTTP status, message, fields.

Source: Kubernetes v1.36 staging/src/k8s.io/apimachinery/pkg/api/errors/errors.go (NewInvalid, NewForbidden,
NewNotFound), pkg/util/errors/errors.go (aggregates); staging/src/k8s.io/apiserver/pkg/admission/errors.go
(extractResourceName). The texts are part of Kubernetes' interface.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum

from msgspec import Struct

from podqos.admission.field_errors import ErrorType, FieldError, Undecoded
from podqos.admission.names import given_name
from podqos.manifest.kinds import POD_HOLDERS
from podqos.model.pod import ObjectMeta, Pod


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


class Undecodable(Denied, frozen=True, gc=False):
    """Why an object cannot be read, and the fields at fault."""

    paths: tuple[str, ...] = ()


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
    def errors(self) -> tuple[FieldError, ...]:
        """The errors field by field; of an object that cannot be read as well."""
        if isinstance(self.denied, Undecodable):
            return tuple(Undecoded(path, ErrorType.INVALID, None, self.denied.message) for path in self.denied.paths)
        return self.field_errors

    @property
    def fields(self) -> tuple[str, ...]:
        """The paths of the fields at fault, each once, sorted."""
        return tuple(sorted({error.path for error in self.field_errors}))


def forbidden_pod(pod: Pod, denied: Denied, *, is_named: bool = True) -> Refusal:
    """Return a plug-in's rejection of a pod; ``is_named``: when its name has been generated, after validation."""
    name = given_name(pod.metadata) if is_named else _early_name(pod.metadata)
    return Refusal(Code.FORBIDDEN, f'pods "{name}" is forbidden: {denied.message}', denied=denied)


def invalid_pod(pod: Pod, errors: Sequence[FieldError]) -> Refusal:
    """Return validation's rejection of a pod."""
    message = f'Pod "{given_name(pod.metadata)}" is invalid: {joined(str(error) for error in errors)}'
    return Refusal(Code.INVALID, message, tuple(errors))


def invalid_holder(kind: str, metadata: ObjectMeta, errors: Sequence[FieldError]) -> Refusal:
    """Return validation's rejection of an object with a pod template."""
    group = POD_HOLDERS[kind].groups[0]
    named = f"{kind}.{group}" if group else kind
    message = f'{named} "{given_name(metadata)}" is invalid: {joined(str(error) for error in errors)}'
    return Refusal(Code.INVALID, message, tuple(errors), is_of_holder=True)


def forbidden_holder(kind: str, metadata: ObjectMeta, denied: Denied) -> Refusal:
    """Return a plug-in's rejection of an object with a pod template."""
    group = POD_HOLDERS[kind].groups[0]
    resource = f"{kind.lower()}s.{group}" if group else f"{kind.lower()}s"
    message = f'{resource} "{_early_name(metadata)}" is forbidden: {denied.message}'
    return Refusal(Code.FORBIDDEN, message, denied=denied)


def joined(messages: Iterable[str]) -> str:
    """Join messages as an aggregate error prints them: each once, in brackets when there are several."""
    unique = list(dict.fromkeys(messages))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"


def _early_name(metadata: ObjectMeta) -> str:
    """Return what an object is called before its name is generated."""
    return metadata.name or metadata.generate_name or "Unknown"
