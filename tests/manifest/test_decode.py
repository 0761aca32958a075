"""Plain values and JSON become the typed model, by Go's rules."""

from __future__ import annotations

import pytest

from podqos.errors import InvalidManifest, InvalidQuantity
from podqos.manifest.amounts import decode_hook
from podqos.manifest.decode import convert_pod, decode_pod
from podqos.manifest.plain import Number, Plain
from podqos.model.quantity import Quantity

AMOUNTS: dict[str, tuple[object, str]] = {
    "text": ("1Gi", "1Gi"),
    "integer": (2, "2"),
    "large integer": (10**30, "1000000000000E"),
    "fraction": (Number.read("1.5"), "1500m"),
    "fraction that ends in zeros": (Number.read("1.500"), "1.500"),
    "exponent": (Number.read("1e3"), "1e3"),
    "float without a text": (0.25, "250m"),
    "null": (None, "0"),
    "spaces around it": (" 1 ", "1"),
    "no-break space before it": ("\xa01Gi", "1Gi"),
}


@pytest.mark.parametrize(("value", "printed"), AMOUNTS.values(), ids=AMOUNTS.keys())
def test_an_amount_is_a_text_or_a_number_by_its_text(value: object, printed: str):
    assert str(decode_hook(Quantity, value)) == printed


@pytest.mark.parametrize("value", ["", " ", "1 Gi", "1Gi\n", "\t1", "128mi", "x", True, False, [], {}], ids=repr)
def test_other_amounts_are_refused(value: object):
    with pytest.raises(InvalidQuantity):
        decode_hook(Quantity, value)


def container(resources: str) -> bytes:
    return b'{"spec": {"containers": [{"name": "a", "resources": %b}]}}' % resources.encode()


def test_numbers_of_json_are_read_by_their_text():
    (only,) = decode_pod(container('{"limits": {"cpu": 1.500, "memory": 1e3, "x": 5}}')).spec.containers
    assert {name: str(amount) for name, amount in only.resources.limits.items()} == {
        "cpu": "1.500",
        "memory": "1e3",
        "x": "5",
    }


def test_null_is_absent_and_a_null_amount_is_zero():
    pod = decode_pod(
        b'{"metadata": null, "spec": {"priority": null, "nodeName": null, "initContainers": null, "overhead": null,'
        b'"nodeSelector": {"a": null}, "tolerations": [null],'
        b'"containers": [{"name": "a", "resources": {"requests": {"cpu": null}, "limits": null}}]}}'
    )
    (only,) = pod.spec.containers
    assert pod.spec.priority is None
    assert pod.spec.node_selector == {"a": ""}
    assert len(pod.spec.tolerations) == 1
    assert only.resources.requests == {"cpu": Quantity.parse("0")}
    assert only.resources.limits == {}


def test_unknown_fields_are_ignored_outside_resources():
    assert (
        decode_pod(b'{"spec": {"newField": 1, "containers": [{"name": "a", "b": {}}]}}').spec.containers[0].name == "a"
    )


INVALID = {
    "resources": (container('{"request": {"cpu": 1}}'), "spec.containers[0].resources.request"),
    "quantity": (
        container('{"limits": {"nvidia.com/gpu": "x"}}'),
        "spec.containers[0].resources.limits[nvidia.com/gpu]",
    ),
    "bool": (container('{"limits": {"cpu": true}}'), "spec.containers[0].resources.limits.cpu"),
    "type": (b'{"spec": {"priority": "high"}}', "spec.priority"),
    "fraction for an integer": (b'{"spec": {"priority": 1.0}}', "spec.priority"),
    "list": (b'{"spec": {"containers": {}}}', "spec.containers"),
    "class": (b'{"status": {"qosClass": "Best"}}', "status.qosClass"),
    "no object": (b"[]", ""),
    "broken": (b"{", ""),
    "not utf-8": (b'{"spec": {"nodeName": "\xff"}}', ""),
}


@pytest.mark.parametrize(("data", "field"), INVALID.values(), ids=INVALID.keys())
def test_what_does_not_fit_names_the_field(data: bytes, field: str):
    with pytest.raises(InvalidManifest) as raised:
        decode_pod(data)
    assert raised.value.where == field


def test_plain_values_convert_like_json():
    value: Plain = {"spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": 1}}}], "priority": 5}}
    assert convert_pod(value) == decode_pod(
        b'{"spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": 1}}}], "priority": 5}}'
    )
