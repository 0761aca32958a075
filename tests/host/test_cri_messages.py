from __future__ import annotations

import pytest
from google.protobuf.json_format import ParseError

from podqos.host.runtimes.cri_messages import MESSAGES, decode, encode


def sample(message: str, depth: int = 0) -> dict[str, object]:
    """Return a message with something in every field."""
    return {name: value(kind, depth) for name, (_, kind) in MESSAGES[message].items()}


def value(kind: str, depth: int) -> object:
    if kind.startswith("repeated "):
        return [value(kind.removeprefix("repeated "), depth)]
    if kind.startswith("map"):
        return {"key": "value"}
    scalars = {"string": "text", "bool": True, "int32": 7, "uint32": 7, "int64": str(1 << 40), "uint64": str(1 << 40)}
    return scalars[kind] if kind in scalars else sample(kind, depth + 1)


@pytest.mark.parametrize("name", MESSAGES)
def test_every_field_comes_back(name):
    assert decode(name, encode(name, sample(name))) == sample(name)


@pytest.mark.parametrize(
    ("name", "message", "wire"),
    [
        # Field number << 3 | wire type, then the value: as any other implementation writes it.
        ("VersionRequest", {"version": "v1"}, b"\x0a\x02v1"),
        ("ExecSyncRequest", {"container_id": "c", "timeout": 300}, b"\x0a\x01c\x18\xac\x02"),
        ("LinuxContainerResources", {"oom_score_adj": -1}, b"\x28" + b"\xff" * 9 + b"\x01"),
        ("ListContainersRequest", {"filter": {"label_selector": {"a": "b"}}}, b"\x0a\x08\x22\x06\x0a\x01a\x12\x01b"),
        ("ContainerConfig", {"linux": {"resources": {"cpu_shares": 2}}}, b"\x7a\x04\x0a\x02\x18\x02"),
        (
            "LinuxContainerSecurityContext",
            {"run_as_user": {"value": 0}, "readonly_rootfs": True, "supplemental_groups": [1, 300]},
            b"\x2a\x00\x38\x01\x42\x03\x01\xac\x02",
        ),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)  # fmt: skip
def test_the_wire_format_is_that_of_the_interface(name, message, wire):
    assert encode(name, message) == wire


def test_fields_that_are_not_listed_are_skipped():
    unknown = b"\xa2\x06\x03abc"
    assert decode("VersionResponse", b"\x12\x0acontainerd" + unknown) == {"runtime_name": "containerd"}


def test_a_field_that_a_message_does_not_have_is_an_error():
    with pytest.raises(ParseError):
        encode("VersionRequest", {"versoin": "v1"})


def test_every_request_has_its_response():
    requests = {name.removesuffix("Request") for name in MESSAGES if name.endswith("Request")}
    assert requests == {name.removesuffix("Response") for name in MESSAGES if name.endswith("Response")}
