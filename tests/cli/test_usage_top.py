"""What pods use: from `kubectl top`, for some replicas of a workload, and above what can be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podqos.cli.main import main
from podqos.errors import InputError
from podqos.orders.usage import read_usage

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: shop}
spec:
  replicas: 3
  template:
    spec:
      containers:
      - {name: app, image: app, resources: {requests: {memory: 1Gi}, limits: {memory: 2Gi}}}
      - {name: proxy, image: proxy, resources: {requests: {memory: 64Mi}}}
"""
CONTAINERS = """\
POD              NAME          CPU(cores)   MEMORY(bytes)
web-7d8b9-x2k9p  app           12m          1500Mi
web-7d8b9-x2k9p  proxy         1m           30Mi
web-api-5c-aaaa  app           2m           200Mi
web-api-5c-aaaa  proxy         1m           20Mi
"""
EVERYWHERE = """\
NAMESPACE    POD              NAME         CPU(cores)   MEMORY(bytes)
kube-system  coredns-1        coredns      3m           40Mi
shop         web-7d8b9-x2k9p  app          12m          1500Mi
shop         web-7d8b9-x2k9p  proxy        1m           30Mi
shop         web-7d8b9-x2k9p  istio-proxy  1m           50Mi
bank         web-7d8b9-other  app          12m          1900Mi
                                           ________   ________
                                           31m          3520Mi
"""


@pytest.fixture(autouse=True)
def _in(tmp_path: Path, monkeypatch):
    (tmp_path / "web.yaml").write_text(DEPLOYMENT.replace("NAME", "web"))
    (tmp_path / "api.yaml").write_text(DEPLOYMENT.replace("NAME", "web-api"))
    monkeypatch.chdir(tmp_path)


def rank(capsys, usage: str, *files: str) -> tuple[int, dict, str]:
    Path("usage").write_text(usage)
    code = main(["rank", *files, "--usage", "usage", "--node-memory", "64Gi", "-o", "json"])
    out, err = capsys.readouterr()
    return code, json.loads(out) if out else {}, err


def uses(report: dict) -> dict[str, int | None]:
    return {each["pod"]: each["usage"] and each["usage"] >> 20 for each in report["evictionOrder"]}


def said(report: dict) -> dict[str, str]:
    return {each["what"]: each["value"] for each in report["assumptions"]}


# ---- kubectl top -------------------------------------------------------------------------------------------------


def test_the_rows_of_kubectl_top_are_those_of_their_containers_with_or_without_a_namespace():
    rows = read_usage("top", CONTAINERS.encode())
    assert [(row.pod, row.container, str(row.memory)) for row in rows][:2] == [
        ("web-7d8b9-x2k9p", "app", "1500Mi"),
        ("web-7d8b9-x2k9p", "proxy", "30Mi"),
    ]
    rows = read_usage("top", EVERYWHERE.encode())
    assert [row.pod for row in rows] == ["kube-system/coredns-1", *["shop/web-7d8b9-x2k9p"] * 3, "bank/web-7d8b9-other"]
    assert rows[0].where == "top:2"


@pytest.mark.parametrize(
    ("text", "pod", "container"),
    [
        pytest.param("NAME CPU(cores) MEMORY(bytes)\nweb 1m 5Mi\n", "web", "", id="pods"),
        pytest.param("\ufeffNAMESPACE NAME CPU(cores) MEMORY(bytes)\r\nshop web 1m 5Mi\r\n", "shop/web", "", id="crlf"),
        pytest.param("POD NAME CPU(cores) MEMORY(bytes)\nweb app <unknown> 5Mi\n", "web", "app", id="unknown"),
    ],
)
def test_other_forms_of_it(text, pod, container):
    (row,) = read_usage("top", text.encode())
    assert (row.pod, row.container, str(row.memory)) == (pod, container, "5Mi")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "NAME CPU(cores) CPU% MEMORY(bytes) MEMORY%\nn1 1 2% 5Gi 4%\n", "this is not usage of pods", id="nodes"
        ),
        pytest.param("NAME CPU(cores) MEMORY(bytes)\nweb 5Mi\n", "more or fewer columns", id="short"),
        pytest.param(
            "NAME CPU(cores) MEMORY(bytes)\nweb 1m lots\n", "top:2: memory: 'lots' is not a valid quantity", id="amount"
        ),
    ],
)
def test_what_is_none_of_it_is_bad_input(text, message):
    with pytest.raises(InputError, match=message):
        read_usage("top", text.encode())


def test_what_a_cluster_runs_besides_is_left_out_and_said(capsys):
    code, report, _ = rank(capsys, EVERYWHERE, "web.yaml")
    assert code == 0
    assert uses(report) == {"shop/web-7d8b9-x2k9p": 1530, "shop/web-0": 1088, "shop/web-1": 1088}
    assert said(report)["3 rows of --usage about other pods"] == "left out"


def test_a_row_of_a_usage_file_about_no_pod_is_still_an_error(capsys):
    code, _, err = rank(capsys, "pod,container,memory\nshop/wbe,app,1Gi\n", "web.yaml")
    assert (code, "no such pod: shop/wbe" in err) == (2, True)


def test_advise_takes_it_for_samples(capsys):
    Path("top").write_text(CONTAINERS)
    assert main(["advise", "web.yaml", "--usage", "top", "-o", "json"]) == 0
    (advice,) = json.loads(capsys.readouterr().out)["workloads"]
    assert [each["container"] for each in advice["containers"]] == ["app", "proxy"]


# ---- replicas ----------------------------------------------------------------------------------------------------


def test_replicas_beside_one_that_is_named_stay_and_what_they_use_is_said(capsys):
    _, report, _ = rank(capsys, CONTAINERS, "web.yaml", "api.yaml")
    assert uses(report) == {
        "shop/web-7d8b9-x2k9p": 1530, "shop/web-0": 1088, "shop/web-1": 1088,
        "shop/web-api-5c-aaaa": 220, "shop/web-api-0": 1088, "shop/web-api-1": 1088,
    }  # fmt: skip
    assert said(report)["usage of shop/web-0, shop/web-1, shop/web-api-0 and 1 more"] == "their requests"


def test_a_workload_that_no_row_is_about_uses_what_it_requests_as_a_replica_without_a_row_does(capsys):
    _, report, _ = rank(capsys, "pod,container,memory\nshop/web,app,1Gi\nshop/web,proxy,1Mi\n", "web.yaml", "api.yaml")
    assert uses(report)["shop/web-api-0"] == 1088
    assert said(report)["usage of shop/web-api-0, shop/web-api-1, shop/web-api-2"] == "their requests"


def test_a_container_without_a_row_beside_one_with_a_row_uses_what_it_requests(capsys):
    _, report, _ = rank(capsys, "pod,container,memory\nshop/web,app,1Gi\n", "web.yaml")
    assert set(uses(report).values()) == {1024 + 64}
    (container,) = {each["isMeasured"] for each in report["killOrder"] if each["container"] == "proxy"}
    assert container, "the kernel's order has it with a figure, too"


# ---- limits ------------------------------------------------------------------------------------------------------


def test_a_row_above_its_limit_is_reported_once_and_counts_as_the_limit(capsys):
    code, report, err = rank(capsys, "pod,container,memory\nweb,app,3Gi\nweb,proxy,1Gi\n", "web.yaml")
    assert code == 0
    (warning,) = [line for line in err.splitlines() if line.startswith("usage:")]
    assert warning.startswith(
        "usage:2: warning: memory: web app uses 3Gi, above its limit of 2Gi; using the limit instead ("
    )
    assert set(uses(report).values()) == {3072}


def test_a_row_at_its_limit_is_as_it_is(capsys):
    _, report, err = rank(capsys, "pod,container,memory\nweb,app,2Gi\nweb,proxy,0\n", "web.yaml")
    assert "usage:" not in err
    assert set(uses(report).values()) == {2048}
