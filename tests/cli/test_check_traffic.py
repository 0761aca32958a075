"""Which workloads users reach, and in which directories Services, routes, budgets, nodes and kubelets count."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podqos.cli.main import main

WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: i}]}
"""
SERVICE = """\
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}, ports: [{port: 80}]}
"""
INGRESS = """\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop, namespace: shop}
spec: {rules: [{http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]}
"""
OLD_INGRESS = """\
apiVersion: extensions/v1beta1
kind: Ingress
metadata: {name: shop, namespace: shop}
spec: {rules: [{http: {paths: [{backend: {serviceName: web, servicePort: 80}}]}}]}
"""
ROUTE = """\
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop, namespace: shop}
spec: {rules: [{backendRefs: [{name: web, port: 80}]}]}
"""
ELSEWHERE = ROUTE.replace("namespace: shop", "namespace: edge")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """Work in a repository of its own, so that no configuration above it is found."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)


def found(capsys, files: dict[str, str], *arguments: str) -> list[dict]:
    for path, text in files.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)
    main(["check", *(arguments or sorted(files)), "-o", "json"])
    return json.loads(capsys.readouterr().out)["items"]


@pytest.mark.parametrize(
    ("route", "expected"),
    [
        pytest.param("", "PQ102", id="other pods only"),
        pytest.param(INGRESS, "PQ104", id="an Ingress"),
        pytest.param(OLD_INGRESS, "PQ104", id="an old Ingress"),
        pytest.param(
            INGRESS.partition("spec:")[0] + "spec: {defaultBackend: {service: {name: web}}}\n",
            "PQ104",
            id="its default",
        ),
        pytest.param(INGRESS.replace("name: web", "name: api"), "PQ102", id="to another Service"),
        pytest.param(INGRESS.replace("namespace: shop", "namespace: other"), "PQ102", id="of another namespace"),
        pytest.param(ROUTE, "PQ104", id="an HTTPRoute"),
        pytest.param(ROUTE.replace("HTTP", "GRPC"), "PQ104", id="a GRPCRoute"),
        pytest.param(ROUTE.replace("HTTPRoute", "TCPRoute").replace("/v1", "/v1alpha2"), "PQ104", id="a TCPRoute"),
        pytest.param(ROUTE.replace("HTTPRoute", "TLSRoute").replace("/v1", "/v1alpha2"), "PQ104", id="a TLSRoute"),
        pytest.param(ROUTE.replace("name: web,", "name: web, kind: Bucket,"), "PQ102", id="to no Service"),
        pytest.param(ELSEWHERE, "PQ102", id="a route of another namespace"),
        pytest.param(ELSEWHERE.replace("name: web,", "name: web, namespace: shop,"), "PQ104", id="that names this one"),
        pytest.param(ROUTE.replace("gateway.networking.k8s.io", "example.com"), "PQ102", id="a kind of others"),
    ],
)
def test_users_reach_what_a_route_or_an_ingress_leads_to(capsys, route, expected):
    (finding,) = found(capsys, {"all.yaml": "---\n".join(filter(None, [WEB, SERVICE, route]))})

    assert finding["check"] == expected
    assert (finding["severity"] == "error") is (expected == "PQ104")


def test_a_headless_service_that_an_ingress_leads_to_has_users(capsys):
    headless = SERVICE.replace("{selector", "{clusterIP: None, selector")
    (finding,) = found(capsys, {"all.yaml": f"{WEB}---\n{headless}---\n{INGRESS}"})

    assert finding["reason"].endswith("and Ingress shop (Service web) sends it users' traffic")


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"a/web.yaml": WEB, "a/service.yaml": SERVICE, "a/ingress.yaml": INGRESS}, "PQ104"),
        ({"a/b/web.yaml": WEB, "a/service.yaml": SERVICE, "a/ingress.yaml": INGRESS}, "PQ104"),
        ({"a/web.yaml": WEB, "a/service.yaml": SERVICE, "b/ingress.yaml": INGRESS}, "PQ102"),
        ({"a/web.yaml": WEB, "b/service.yaml": SERVICE, "a/ingress.yaml": INGRESS}, "PQ102"),
    ],
    ids=["one directory", "below", "the Ingress elsewhere", "the Service elsewhere"],
)
def test_services_and_routes_of_a_walked_directory_count_there_and_below(capsys, files, expected):
    assert [each["check"] for each in found(capsys, files, ".")] == [expected]
    named = [argument for path in sorted(files) for argument in ("-f", path)]
    assert [each["check"] for each in found(capsys, files, *named)] == ["PQ104"]


LARGE = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: large}
spec:
  replicas: 1
  template:
    metadata: {labels: {app: large}}
    spec:
      containers:
        - name: c
          image: i
          resources: {requests: {cpu: 1500m, memory: 9Gi}, limits: {cpu: 1500m, memory: 9Gi, ephemeral-storage: 1Gi}}
"""
NODE = """\
apiVersion: v1
kind: Node
metadata: {name: small}
status: {capacity: {cpu: "8", memory: 8Gi}, allocatable: {cpu: "8", memory: 8Gi}}
"""
KUBELET = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cpuManagerPolicy: static
systemReserved: {cpu: "1", memory: 1Gi}
evictionHard: {memory.available: 1Gi}
"""
BUDGET = """\
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: large}
spec: {minAvailable: 1, selector: {matchLabels: {app: large}}}
"""


@pytest.mark.parametrize(
    ("other", "check"),
    [(NODE, "PQ503"), (NODE, "PQ504"), (KUBELET, "PQ115"), (BUDGET, "PQ605")],
    ids=["Node", "too large for a Node", "kubelet", "budget"],
)
def test_nodes_kubelets_and_budgets_of_a_walked_directory_count_there_and_below(capsys, other, check):
    for folder, counts in (("a", True), ("a/b", True), ("c", False)):
        files = {"a/other.yaml": other, f"{folder}/large.yaml": LARGE}
        checks = [each["check"] for each in found(capsys, files, ".")]
        assert (check in checks) is counts, folder
        Path(f"{folder}/large.yaml").unlink()


def test_what_the_nodes_of_policies_have_no_room_for_is_told_of_the_largest_workload(capsys):
    small = WEB.replace("name: web, image: i", "name: web, image: i, resources: {requests: {memory: 1Gi}}")
    Path("nodes.yaml").write_text(NODE)
    files = {"large.yaml": LARGE, "small.yaml": small}
    items = found(capsys, files, *files, "--policies", "nodes.yaml")

    (item,) = (each for each in items if each["check"] == "PQ503")
    assert (item["source"], item["name"]) == ("large.yaml", "large")
    assert item["path"] == "spec.template.spec.containers[0].resources"


def test_sarif_names_a_page_for_every_rule(capsys):
    import tomllib

    Path("web.yaml").write_text(WEB)
    main(["check", "web.yaml", "-o", "sarif"])
    rules = json.loads(capsys.readouterr().out)["runs"][0]["tool"]["driver"]["rules"]
    root = Path(__file__).resolve().parents[2]
    home = tomllib.loads((root / "pyproject.toml").read_text())["project"]["urls"]["Homepage"]
    headings = [line.removeprefix("### ") for line in (root / "docs/reference/checks.md").read_text().splitlines()]
    anchors = {heading.lower().replace(" ", "-") for heading in headings}
    for rule in rules:
        page, _, anchor = rule["helpUri"].partition("#")
        assert page == f"{home}/docs/reference/checks.md"
        assert anchor in anchors


def test_a_small_sidecar_matters_to_whatever_a_service_sends_traffic_to(capsys):
    pod = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop, labels: {app: web}}\nspec:\n  containers:\n"
        "    - {name: web, image: i, resources: {requests: {cpu: 1, memory: 4Gi}, limits: {memory: 8Gi}}}\n"
        "    - {name: proxy, image: i, resources: {requests: {cpu: 1, memory: 32Mi}, limits: {memory: 64Mi}}}\n---\n"
    )
    headless = SERVICE.replace("{selector", "{clusterIP: None, selector")

    assert "PQ114" in [each["check"] for each in found(capsys, {"all.yaml": pod + SERVICE})]
    assert "PQ114" not in [each["check"] for each in found(capsys, {"all.yaml": pod + headless})]
