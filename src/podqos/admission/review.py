"""AdmissionReview v1: the API server's request to a webhook, and the response.

Source: Kubernetes v1.36 staging/src/k8s.io/api/admission/v1/types.go; what an answer must look like to be taken:
staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/request/admissionreview.go.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Raw, Struct

from podqos.errors import InputError
from podqos.manifest.decode import PLAIN_DECODER, REFUSALS
from podqos.manifest.plain import Plain

API_VERSION: Literal["admission.k8s.io/v1"] = "admission.k8s.io/v1"
KIND: Literal["AdmissionReview"] = "AdmissionReview"

CREATE, UPDATE = "CREATE", "UPDATE"
RESIZE, EPHEMERAL_CONTAINERS = "resize", "ephemeralcontainers"

_NULL = Raw(b"null")


class GroupVersionKind(Struct, frozen=True):
    """The type of an object."""

    kind: str
    version: str = ""
    group: str = ""

    @property
    def api_version(self) -> str:
        """``v1``, ``apps/v1``."""
        return f"{self.group}/{self.version}" if self.group else self.version


class UserInfo(Struct, frozen=True):
    """The requesting user."""

    username: str = ""
    groups: tuple[str, ...] | None = None


class AdmissionRequest(Struct, frozen=True, rename="camel"):
    """The requested operation and its object."""

    uid: str
    """Identifies the request; the response repeats it."""
    kind: GroupVersionKind
    operation: str
    """CREATE, UPDATE, DELETE or CONNECT."""
    sub_resource: str = ""
    name: str = ""
    """Empty if the API server generates one."""
    namespace: str = ""
    user_info: UserInfo = UserInfo()
    object: Raw = _NULL
    old_object: Raw = _NULL
    dry_run: bool | None = None


class _WholeReview(Struct, frozen=True, rename="camel"):
    kind: Literal["AdmissionReview"]
    api_version: Literal["admission.k8s.io/v1"]
    request: AdmissionRequest


class _Review(Struct, frozen=True, rename="camel"):
    kind: str = ""
    api_version: str = ""
    request: Raw = _NULL


class Status(Struct, frozen=True):
    """Why a request is rejected."""

    message: str
    code: int = 403
    reason: str = "Forbidden"


class AdmissionResponse(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The response."""

    uid: str
    allowed: bool
    status: Status | None = None
    patch_type: str = ""
    patch: bytes | None = None
    """JSON, sent in base64. An empty patch is left out: the API server treats it as an error."""
    audit_annotations: dict[str, str] = {}
    warnings: tuple[str, ...] = ()


class AnsweredReview(Struct, frozen=True, rename="camel", kw_only=True):
    """The answer to a review."""

    api_version: Literal["admission.k8s.io/v1"] = API_VERSION
    kind: Literal["AdmissionReview"] = KIND
    response: AdmissionResponse


class InvalidReview(InputError):
    """The body is not an AdmissionReview that can be answered."""


_WHOLE = msgspec.json.Decoder(_WholeReview)
_ENVELOPE = msgspec.json.Decoder(_Review)
_REQUEST = msgspec.json.Decoder(AdmissionRequest)
_ANSWER = msgspec.json.Encoder()


def read_review(body: bytes) -> AdmissionRequest:
    """Return the request in the body of a review, or raise ``InvalidReview``."""
    try:
        request = _WHOLE.decode(body).request
    except REFUSALS:
        return _read_in_parts(body)
    if not request.uid:
        raise InvalidReview("the request has no uid", where="request.uid")
    return request


def _read_in_parts(body: bytes) -> AdmissionRequest:
    """Raise the error of an invalid review."""
    try:
        review = _ENVELOPE.decode(body)
    except msgspec.ValidationError as error:
        raise InvalidReview(f"not an AdmissionReview: {error}") from None
    except REFUSALS as error:
        raise _no_json(error) from None
    if review.kind != KIND:
        what = f"must be {KIND}, not {review.kind!r}" if review.kind else "missing"
        raise InvalidReview(what, where="kind", fix=f"send an {KIND}")
    if review.api_version != API_VERSION:
        what = f"apiVersion is {review.api_version!r}" if review.api_version else "apiVersion is missing"
        raise InvalidReview(what, where="apiVersion", fix="register the webhook with admissionReviewVersions: [v1]")
    if bytes(review.request) == b"null":
        raise InvalidReview(
            "the review has no request", where="request", fix="send a review with a request, not a response"
        )
    try:
        return _REQUEST.decode(review.request)
    except msgspec.ValidationError as error:
        raise InvalidReview(f"not a valid request: {error}", where="request") from None
    except REFUSALS as error:
        raise _no_json(error, "request") from None


def _no_json(error: Exception, where: str = "") -> InvalidReview:
    what = "nested too deeply" if isinstance(error, RecursionError) else f"not JSON: {error}"
    return InvalidReview(what, where=where, fix=f"send an {KIND} in JSON")


def plain_object(raw: Raw, field: str) -> dict[str, Plain] | None:
    """Return an object of a review, None for a null; ``field`` is where it is."""
    try:
        value = PLAIN_DECODER.decode(raw)
    except REFUSALS as error:
        raise _no_json(error, f"request.{field}") from None
    if value is None or isinstance(value, dict):
        return value
    raise InvalidReview("no object", where=f"request.{field}")


def encode_answer(response: AdmissionResponse) -> bytes:
    """Return the body of an answer."""
    return _ANSWER.encode(AnsweredReview(response=response))
