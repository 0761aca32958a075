"""Charts rendered by the real Helm: our own, and small ones with all that charts have."""

import json
from pathlib import Path

import pytest

from podqos.cli.main import main
from programs import HELM, needs_helm

ROOT = Path(__file__).parents[2]
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME}\nspec: {containers: [{name: c, image: i}]}\n"
FILES = {
    "umbrella/Chart.yaml": (
        "apiVersion: v2\nname: shop\nversion: 1.0.0\n"
        "dependencies: [{name: sub, version: 1.0.0}, {name: lib, version: 1.0.0}]\n"
    ),
    "umbrella/values.yaml": "replicas: 1\n",
    "umbrella/crds/crd.yaml": POD.replace("NAME", "from-crds"),
    "umbrella/templates/web.yaml": (
        '{{ include "lib.comment" . }}\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n'
        "  replicas: {{ .Values.replicas }}\n  selector: {matchLabels: {app: web}}\n"
        "  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}\n"
    ),
    "umbrella/templates/hook.yaml": POD.replace("NAME", "hook, annotations: {helm.sh/hook: pre-install}"),
    "umbrella/templates/tests/t.yaml": POD.replace("NAME", "tested, annotations: {helm.sh/hook: test}"),
    "umbrella/templates/off.yaml": "{{- if .Values.off }}\n" + POD + "{{- end }}\n",
    "umbrella/templates/NOTES.txt": "1. Get: {{ .Release.Name }}: it: {\n",
    "umbrella/charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
    "umbrella/charts/sub/templates/pod.yaml": POD.replace("NAME", "sub"),
    "umbrella/charts/lib/Chart.yaml": "apiVersion: v2\nname: lib\nversion: 1.0.0\ntype: library\n",
    "umbrella/charts/lib/templates/_lib.tpl": '{{- define "lib.comment" }}# from a library{{ end }}\n',
    "lib/Chart.yaml": "apiVersion: v2\nname: lib\nversion: 1.0.0\ntype: library\n",
    "lacking/Chart.yaml": (
        "apiVersion: v2\nname: lacking\nversion: 1.0.0\ndependencies: [{name: redis, version: 1.0.0, repository: 'file://../r'}]\n"
    ),
    "strict/Chart.yaml": "apiVersion: v2\nname: strict\nversion: 1.0.0\n",
    "strict/templates/a.yaml": POD.replace("NAME", '{{ required "name:\\nplease" .Values.name }}-{{ .Values.kind }}'),
}  # fmt: skip


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run commands among the charts, with Helm on the PATH."""
    Path(tmp_path, "bin").mkdir()
    Path(tmp_path, "bin/helm").symlink_to(HELM)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)

    def command(*arguments):
        code = main([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return command


def items(out):
    return {(item["name"], item["source"]) for item in json.loads(out)["items"]}


@needs_helm
def test_our_own_chart_renders_without_a_finding_above_info(run):
    code, out, err = run("check", "-k", ROOT / "deploy/chart", "-o", "json")
    assert (code, "error" in err, "warning" in err) == (0, False, False), err
    report = json.loads(out)["summary"]
    assert report["objects"] >= 3
    assert report["files"] == 1


@needs_helm
def test_a_tree_of_charts_is_rendered_once_with_every_failure_in_full(run):
    code, out, err = run("check", ".", "--render", "-o", "json", "-v")
    assert code == 2
    assert items(out) == {
        ("web", "./umbrella/templates/web.yaml (rendered)"),
        ("hook", "./umbrella/templates/hook.yaml (rendered)"),
        ("sub", "./umbrella/charts/sub/templates/pod.yaml (rendered)"),
    }
    assert (
        "./lacking: error: cannot render this Helm chart: its dependencies are not in charts/: redis "
        "(run `helm dependency build ./lacking`)\n"
        "./strict: error: cannot render this Helm chart (give what Helm prints: "
        "`helm template … --values FILE | podqos check -`)\n"
        "    $ helm template ./strict --skip-tests\n"
        "    Error: execution error at (strict/templates/a.yaml:3:20): name:\n"
        "    please\n"
    ) in err
    assert err.count("error:") == 2
