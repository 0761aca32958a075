"""Jsonnet is not rendered: one line says so, and how; what it renders to is read."""

import pytest

from podqos.cli.main import main
from podqos.reading.gathering import gather

POD = '{ apiVersion: "v1", kind: "Pod" }'


@pytest.fixture
def tree(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(texts):
        for name, text in texts.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return write


def said(*given):
    return [(problem.source, problem.what, str(problem.fix)) for problem in gather(given).problems]


def test_jsonnet_of_kubernetes_is_named_once_with_its_number(tree):
    tree({"app/lib/a.libsonnet": "{}", "app/main.jsonnet": POD, "app/pod.yaml": "", "app/vendor/v.jsonnet": POD})
    ((where, what, fix),) = said("app")
    assert (where, what) == ("app", "skipped: 2 Jsonnet files, which are not rendered")
    assert fix.startswith("jsonnet app/main.jsonnet")


def test_jsonnet_of_something_else_is_not_named_next_to_manifests(tree):
    tree({"app/dashboard.jsonnet": "{ title: 'latency' }", "app/pod.yaml": ""})
    assert said("app") == []


def test_a_directory_with_nothing_but_jsonnet_says_why_nothing_is_read(tree, capsys):
    tree({"app/dashboard.jsonnet": "{ title: 'latency' }"})
    assert main(["check", "app"]) == 2
    assert "app: warning: skipped: Jsonnet (jsonnet app/dashboard.jsonnet | podqos … -f -)" in capsys.readouterr().err


def test_a_jsonnet_file_that_is_named_is_not_read_as_yaml(tree):
    tree({"main.jsonnet": POD})
    assert gather(["main.jsonnet"]).files == []
    ((where, what, _),) = said("main.jsonnet")
    assert (where, what) == ("main.jsonnet", "skipped: Jsonnet")


OBJECT = (
    '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "%s"}, '
    '"spec": {"containers": [{"name": "c", "image": "i"}]}}'
)


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_objects_by_name_as_jsonnet_writes_them_are_read(tree, capsys, suffix):
    tree({f"out.{suffix}": f'{{"a": {{"b": {OBJECT % "one"}}}, "c": {OBJECT % "two"}}}'})
    main(["explain", "-f", f"out.{suffix}", "-o", "name"])
    assert capsys.readouterr().out.splitlines() == ["pod/one", "pod/two"]


def test_values_with_an_object_among_them_are_no_objects(tree, capsys):
    tree({"values.yaml": f"extra: {OBJECT % 'one'}\nreplicas: 2\n"})
    main(["explain", "-f", "values.yaml", "-o", "name"])
    assert capsys.readouterr().out == ""
