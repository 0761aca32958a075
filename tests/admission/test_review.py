import json

import pytest

from podqos.admission.review import AdmissionResponse, InvalidReview, Status, encode_answer, plain_object, read_review

REQUEST = {"uid": "u-1", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "operation": "CREATE"}


def body(**changes):
    return json.dumps(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": REQUEST, **changes}
    ).encode()


def test_a_request_needs_no_more_than_uid_kind_and_operation():
    request = read_review(body())
    assert (request.uid, request.kind.kind, request.name, request.namespace) == ("u-1", "Pod", "", "")
    assert plain_object(request.object, "object") is None


@pytest.mark.parametrize(
    ("sent", "where"),
    [
        (b"", ""),
        (b"[]", ""),
        (b"{", ""),
        (b"\xff\xfe", ""),
        (body(kind="Pod"), "kind"),
        (body(kind=None), ""),
        (body(apiVersion="admission.k8s.io/v1beta1"), "apiVersion"),
        (body(apiVersion=""), "apiVersion"),
        (body(request=None), "request"),
        (body(request=[]), "request"),
        (body(request=REQUEST | {"uid": ""}), "request.uid"),
        (body(request=REQUEST | {"uid": 7}), "request"),
        (body(request={"uid": "x"}), "request"),
        (b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":' + b"[" * 100_000, ""),
    ],
)
def test_what_is_no_review_is_refused_with_its_place(sent, where):
    with pytest.raises(InvalidReview) as error:
        read_review(sent)
    assert error.value.where == where


def test_an_object_that_is_none_is_refused_with_its_place():
    request = read_review(body(request=REQUEST | {"object": [1]}))
    with pytest.raises(InvalidReview) as error:
        plain_object(request.object, "object")
    assert error.value.where == "request.object"


def test_an_answer_has_only_what_is_said_and_always_whether_it_is_allowed():
    assert json.loads(encode_answer(AdmissionResponse("u-1", allowed=True))) == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "u-1", "allowed": True},
    }


def test_a_refusal_says_forbidden():
    refused = json.loads(encode_answer(AdmissionResponse("u-1", allowed=False, status=Status("no"))))
    assert refused["response"]["status"] == {"message": "no", "code": 403, "reason": "Forbidden"}
