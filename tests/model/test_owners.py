"""Which workload a pod belongs to, as far as the pod itself tells."""

from __future__ import annotations

import pytest

from podqos.model.owners import controllers
from podqos.model.pod import ObjectMeta, OwnerReference, Pod
from podqos.page.cluster import ShownSource
from podqos.page.session import PageSource, SourceKind

HASH = {"pod-template-hash": "5d4f"}


def made_by(kind, name, labels=None, *, is_controller=True):
    owners = (OwnerReference("apps/v1", kind, name, controller=is_controller),)
    return ObjectMeta(name="pod", namespace="shop", labels=labels or {}, owner_references=owners)


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        pytest.param(made_by("StatefulSet", "db"), ["StatefulSet/db"], id="a controller of its own"),
        pytest.param(
            made_by("ReplicaSet", "web-5d4f", HASH), ["ReplicaSet/web-5d4f", "Deployment/web"], id="a Deployment"
        ),
        pytest.param(made_by("ReplicaSet", "web-5d4f"), ["ReplicaSet/web-5d4f"], id="a ReplicaSet alone"),
        pytest.param(
            made_by("Job", "report-29012345"), ["Job/report-29012345", "CronJob/report"], id="a CronJob by the minute"
        ),
        pytest.param(made_by("Job", "report-1"), ["Job/report-1"], id="a Job without a CronJob"),
        pytest.param(made_by("Node", "atlas-1", is_controller=False), [], id="an owner that is not a controller"),
        pytest.param(ObjectMeta(name="pod"), [], id="nothing"),
    ],
)
def test_a_pod_belongs_to_its_controller_and_to_what_made_that(metadata, expected):
    assert [f"{kind}/{name}" for kind, name in controllers(metadata)] == expected


def test_the_page_shows_pods_of_a_cron_job_as_its_replicas():
    maker_of = ShownSource(PageSource(SourceKind.SNAPSHOT, "c")).maker_of
    assert maker_of(Pod(metadata=made_by("Job", "report-29012345"))) == "CronJob shop/report"
    assert maker_of(Pod(metadata=made_by("ReplicaSet", "web-5d4f", HASH))) == "Deployment shop/web"
    assert maker_of(Pod()) == ""
