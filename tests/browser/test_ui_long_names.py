"""Names of 253 characters, and of files with 200: no view becomes wider than the window."""

from __future__ import annotations

import pytest

from browser.settling import resize, settle

pytestmark = pytest.mark.slow
expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect

POD, NODE = (".".join([letter * 63] * 3 + [letter * 60]) for letter in "pn")
SPACE, CONTAINER, PRIORITY = "s" * 63, "c" * 63, "k" * 63
MANIFESTS = "---".join(
    f"""
apiVersion: v1
kind: Pod
metadata: {{name: {POD}{number}, namespace: {SPACE}}}
spec:
  nodeName: {NODE}
  priorityClassName: {PRIORITY}
  containers: [{{name: {CONTAINER}, image: web, resources: {{requests: {{memory: {number + 1}00Mi}}}}}}]
"""
    for number in range(3)
) + (
    f"---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: {PRIORITY}}}\nvalue: 5\n"
    f"---\napiVersion: v1\nkind: Node\nmetadata: {{name: {NODE}}}\nstatus: {{capacity: {{memory: 4Gi, cpu: 4}}}}\n"
    "---\nkind: Pod\nmetadata: {name: [}\n"
)
SCENARIO = f"""apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {{name: {POD}0}}
spec:
  duration: 1m
  manifests: [pods.yaml]
  nodes: [{{name: {NODE}, capacity: {{cpu: 4, memory: 2Gi}}}}]
  workloads: [{{workload: {POD}0, demand: {{memory: 100Mi + 64Mi per second}}}}]
"""
ROUTES = (
    "cluster",
    "cluster?show=blocks",
    "cluster?show=table",
    f"pod/{SPACE}/{POD}0",
    f"what-if?pod={SPACE}/{POD}0",
    "forecast",
    "check",
    "blast",
    "autopsy",
)


@pytest.fixture(scope="module")
def servers(serve, tmp_path_factory):
    folder = tmp_path_factory.mktemp("long")
    (folder / ("f" * 200 + ".yaml")).write_text(MANIFESTS)
    (folder / "scenario.yaml").write_text(SCENARIO)
    pods = MANIFESTS.partition("---\napiVersion: scheduling")[0].replace(f"  nodeName: {NODE}\n", "")
    (folder / "pods.yaml").write_text(pods.replace(f"  priorityClassName: {PRIORITY}\n", ""))
    return {"manifests": serve(folder / ("f" * 200 + ".yaml")), "scenario": serve(folder / "scenario.yaml")}


@pytest.mark.parametrize(("kind", "route"), [*(("manifests", route) for route in ROUTES), ("scenario", "run")])
def test_no_name_widens_a_view(visit, servers, kind, route):
    page = visit(servers[kind]).open(f"#/{route}")
    expect(page.locator("main .card, main .panel, main .state").first).to_be_visible()
    for width in (1280, 390):
        resize(page, width)
        settle(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, width
