from __future__ import annotations

import msgspec
import pytest

from podqos.model.pod import Pod, Toleration, Volume
from podqos.model.quantity import Quantity

MEMORY_PRESSURE = ("node.kubernetes.io/memory-pressure", "", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (Toleration(operator="Exists"), True),
        (Toleration(key=MEMORY_PRESSURE[0], operator="Exists"), True),
        (Toleration(key=MEMORY_PRESSURE[0], operator="Exists", effect="NoSchedule"), True),
        (Toleration(key=MEMORY_PRESSURE[0]), True),
        (Toleration(key=MEMORY_PRESSURE[0], operator="Equal"), True),
        (Toleration(key=MEMORY_PRESSURE[0], operator="Equal", value="x"), False),
        (Toleration(key=MEMORY_PRESSURE[0], operator="Exists", effect="NoExecute"), False),
        (Toleration(key="node.kubernetes.io/disk-pressure", operator="Exists"), False),
        (Toleration(key=MEMORY_PRESSURE[0], operator="Gt"), False),
    ],
    ids=str,
)
def test_what_a_toleration_leaves_out_matches_everything(toleration, tolerated):
    assert toleration.tolerates(*MEMORY_PRESSURE) is tolerated


@pytest.mark.parametrize(
    ("source", "local"),
    [
        ({"emptyDir": {}}, True),
        ({"emptyDir": {"medium": "Memory"}}, False),
        ({"emptyDir": {"medium": "HugePages"}}, False),
        ({"hostPath": {"path": "/"}}, True),
        ({"configMap": {"name": "c"}}, True),
        ({"gitRepo": {"repository": "r"}}, True),
        ({"secret": {"secretName": "s"}}, False),
        ({"projected": {"sources": []}}, False),
        ({"downwardAPI": {}}, False),
        ({"persistentVolumeClaim": {"claimName": "c"}}, False),
        ({"emptyDir": None}, False),
    ],
    ids=str,
)
def test_only_volumes_on_the_nodes_own_disk_are_local(source, local):
    assert msgspec.convert({"name": "v", **source}, Volume).is_local is local


def test_a_size_limit_is_an_amount():
    """Decoded like every other quantity of a manifest."""
    document = {"spec": {"volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}]}}
    pod = msgspec.convert(document, Pod, dec_hook=lambda _, text: Quantity.parse(text))
    assert pod.spec.volumes[0].empty_dir.size_limit == Quantity.parse("1024Mi")
