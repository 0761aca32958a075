"""PQ122–PQ125: what runtimes are told, held against the limit, through the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advice.bundles import plain_objects
from podqos.cli.main import main
from podqos.manifest import lookup
from podqos.manifest.encoding import yaml_bytes
from podqos.manifest.fastyaml import read_plain
from podqos.manifest.runtime_memory import memory_settings, written

POD = """\
apiVersion: v1
kind: Pod
metadata: {{name: p}}
spec:
  containers:
    - name: app
      image: {image}
      {said}
      resources: {{requests: {{cpu: 1, memory: 1Gi}}, limits: {{cpu: 2, memory: {limit}}}}}
"""
OURS = ("PQ122", "PQ123", "PQ124", "PQ125")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)


def items(capsys, said: str, limit: str = "2Gi", image: str = "app"):
    """Return what is found about runtimes in a pod whose container says this."""
    Path("pod.yaml").write_text(POD.format(said=said, limit=limit, image=image))
    main(["check", "pod.yaml", "-o", "json"])
    return [each for each in json.loads(capsys.readouterr().out)["items"] if each["check"] in OURS]


def env(name: str, value: str) -> str:
    """Return an environment of one variable."""
    return f"env: [{{name: {name}, value: '{value}'}}]"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        # Java
        (env("JAVA_TOOL_OPTIONS", "-Xms1g -Xmx2g"), "PQ122"),
        (env("JAVA_OPTS", "-Xmx2048m"), "PQ122"),
        (env("JAVA_OPTS", "-Xms3g"), "PQ122"),
        # a quarter of it
        (env("JAVA_OPTS", "-XX:MaxRAM=8g"), "PQ122"),
        (env("JAVA_OPTS", "-XX:MaxRAM=4g"), ""),
        (env("ES_JAVA_OPTS", "-Xms1g -Xmx1g"), ""),
        (env("KAFKA_HEAP_OPTS", "-Xmx1900M"), "PQ123"),
        (env("JAVA_TOOL_OPTIONS", "-XX:MaxRAMPercentage=75.0"), ""),
        (env("JAVA_TOOL_OPTIONS", "-XX:MaxRAMPercentage=90"), "PQ123"),
        (env("JAVA_TOOL_OPTIONS", "-XX:MaxRAMPercentage=100"), "PQ122"),
        (env("JAVA_TOOL_OPTIONS", "-XX:MaxRAMPercentage=95 -Xmx1g"), ""),
        (env("JAVA_TOOL_OPTIONS", "-Xmx3g -Xmx1g"), ""),
        (env("JAVA_OPTS", "${EXTRA:--Xmx512m}"), ""),
        ("command: [java, -Xmx3g, -jar, app.jar]", "PQ122"),
        ('command: ["java"]\n      args: ["-XX:MaxHeapSize=3g"]', "PQ122"),
        ("command: [sh, -c, 'exec java -Xmx3g -jar app.jar']", "PQ122"),
        (f"{env('HEAP', '3g')}\n      command: [sh, -c, 'exec java -Xmx$HEAP -jar app.jar']", "PQ122"),
        (f"{env('HEAP', '3g')}\n      args: [-Xmx$(HEAP)]", "PQ122"),
        (f"{env('JAVA_TOOL_OPTIONS', '-Xmx3g')}\n      args: [-Xmx1g]", ""),
        (f"{env('_JAVA_OPTIONS', '-Xmx3g')}\n      args: [-Xmx1g]", "PQ122"),
        (env("MAX_HEAP_SIZE", "4G"), "PQ122"),
        (env("JAVA_OPTS", "-Xmx1Gi"), "PQ125"),
        # Node.js
        (env("NODE_OPTIONS", "--max-old-space-size=4096"), "PQ122"),
        (env("NODE_OPTIONS", "--max_old_space_size=1900"), "PQ123"),
        ("command: [node, --max-old-space-size=1536, server.js]", ""),
        # Go
        (env("GOMEMLIMIT", "1800MiB"), ""),
        (env("GOMEMLIMIT", "2GiB"), ""),
        (env("GOMEMLIMIT", "3GiB"), "PQ123"),
        (env("GOMEMLIMIT", "off"), ""),
        (env("GOMEMLIMIT", "1800Mi"), "PQ125"),
        ("command: [sh, -c, 'GOMEMLIMIT=3GiB ./app']", "PQ123"),
        ("env: [{name: GOMEMLIMIT, valueFrom: {resourceFieldRef: {resource: limits.memory}}}]", ""),
        # databases and caches
        ("args: [redis-server, --maxmemory, 2gb, --maxmemory-policy, allkeys-lru]", "PQ122"),
        ("args: [--maxmemory=1gb]", ""),
        ("args: [--maxmemory, 2000mb]", "PQ123"),
        ("args: [--maxmemory, 1Gi]", "PQ125"),
        ("args: [--maxmemory-policy, allkeys-lru]", ""),
        ("args: [-c, shared_buffers=2GB]", "PQ122"),
        ("args: [-c, shared_buffers=1200MB]", "PQ123"),
        ("args: [-c, 'shared_buffers=512MB', -c, max_connections=200]", ""),
        ("args: [-c, shared_buffers=262144]", "PQ122"),
        ("args: [--innodb-buffer-pool-size=2G]", "PQ122"),
        ("args: [--wiredTigerCacheSizeGB, '0.5']", ""),
        ("args: [--wiredTigerCacheSizeGB, '2']", "PQ122"),
        ("args: [memcached, -m, '4096']", "PQ122"),
        ("args: [tool, -m, '4096']", ""),
        # .NET
        (env("DOTNET_GCHeapHardLimit", "0x80000000"), "PQ122"),
        (env("DOTNET_GCHeapHardLimitPercent", "4B"), ""),
        # not in the manifest
        ("env: [{name: JAVA_OPTS, valueFrom: {configMapKeyRef: {name: app, key: o}}}]", "PQ124"),
        ("env: [{name: HEAP, valueFrom: {secretKeyRef: {name: s, key: o}}}]\n      args: [-Xmx$(HEAP)]", "PQ124"),
        ("env: [{name: LEVEL, valueFrom: {configMapKeyRef: {name: app, key: o}}}]", ""),
    ],
)
def test_what_a_runtime_is_told_is_held_against_the_limit(capsys, said, expected):
    assert [each["check"] for each in items(capsys, said)] == ([expected] if expected else [])


def test_memcached_is_known_by_its_image(capsys):
    (item,) = items(capsys, "args: ['-m', '2000']", image="docker.io/library/memcached:1.6")

    assert item["check"] == "PQ123"
    assert item["reason"] == (
        "-m 2000 lets memcached in app use 2000Mi, 97% of its memory limit of 2Gi; connections and the hash table come "
        "on top"
    )


def test_the_finding_has_its_line_and_names_the_variable(capsys):
    (item,) = items(capsys, "env:\n        - name: JAVA_OPTS\n          value: -Xmx4g")

    assert (item["line"], item["path"]) == (10, "spec.containers[0].env[0].value")
    assert item["reason"].startswith("-Xmx4g in JAVA_OPTS lets Java in app use 4Gi, 200% of its memory limit of 2Gi")
    assert "kubectl top pod --containers" in item["patch"]["text"]


def test_without_a_limit_there_is_nothing_to_exceed(capsys):
    text = POD.format(said=env("JAVA_OPTS", "-Xmx64g"), limit="1Gi", image="app")
    Path("pod.yaml").write_text(text.replace(", limits: {cpu: 2, memory: 1Gi}", ""))
    main(["check", "pod.yaml", "-o", "json"])

    assert not [each for each in json.loads(capsys.readouterr().out)["items"] if each["check"] in OURS]


def test_what_is_known_is_judged_beside_what_is_not(capsys):
    unknown = "{name: JAVA_OPTS, valueFrom: {configMapKeyRef: {name: app, key: o}}}"
    said = f"env: [{unknown}, {{name: JAVA_TOOL_OPTIONS, value: -XX:MaxRAMPercentage=90}}]"

    assert [each["check"] for each in items(capsys, said)] == ["PQ123", "PQ124"]


def test_the_container_is_killed_alone_at_its_own_limit(capsys):
    (item,) = items(capsys, env("JAVA_OPTS", "-Xmx4g"))

    assert item["effects"]["effect"] == "limit"
    assert item["consequence"].startswith("the container is OOM-killed at its own memory limit")


def test_windows_line_ends_and_a_mark_hide_nothing(capsys):
    text = POD.format(said=env("JAVA_OPTS", "-Xmx4g"), limit="2Gi", image="app").replace("\n", "\r\n")
    other = "apiVersion: v1\r\nkind: ConfigMap\r\nmetadata: {name: c}\r\ndata: {a: b}\r\n---\r\n" * 20
    Path("pod.yaml").write_bytes(b"\xef\xbb\xbf" + (other + text).encode())
    main(["check", "pod.yaml", "-o", "json"])

    assert "PQ122" in [each["check"] for each in json.loads(capsys.readouterr().out)["items"]]


@pytest.mark.parametrize("notation", ["yaml", "json"])
def test_a_list_is_read_once_however_many_of_its_objects_mention_a_runtime(capsys, monkeypatch, notation):
    (pod,) = plain_objects(POD.format(said=env("JAVA_OPTS", "-Xmx4g"), limit="2Gi", image="app"))
    (other,) = plain_objects(POD.format(said="args: [-v]", limit="2Gi", image="app"))
    pods = [{**(pod if number % 2 else other), "metadata": {"name": f"p{number}"}} for number in range(20)]
    whole = {"apiVersion": "v1", "kind": "List", "items": pods}
    Path(f"list.{notation}").write_bytes(yaml_bytes(whole) if notation == "yaml" else json.dumps(whole).encode())
    read = []
    monkeypatch.setattr(lookup, "read_plain", lambda text, **options: (read.append(1), read_plain(text, **options))[1])
    main(["check", f"list.{notation}", "-o", "json"])

    found = [each["name"] for each in json.loads(capsys.readouterr().out)["items"] if each["check"] == "PQ122"]
    assert found == [f"p{number}" for number in range(1, 20, 2)]
    assert len(read) <= 1


def test_values_of_secrets_are_in_no_output(capsys):
    said = "env: [{name: PASSWORD, value: hunter2-Xmx}, {name: JAVA_OPTS, value: -Xmx4g -Dpassword=hunter2}]"

    assert items(capsys, said)
    main(["check", "pod.yaml", "-v"])
    assert "hunter2" not in capsys.readouterr().out


@given(st.integers(1, 4000), st.sampled_from("kmgKMG"), st.integers(1, 5000))
def test_what_is_passed_over_unread_would_have_fitted(number, unit, limit_mebibytes):
    """The shortcut for what is written mostly is never taken where reading would find something."""
    limit_bytes = limit_mebibytes << 20
    for name, value in (("JAVA_OPTS", f"-Xmx{number}{unit}"), ("GOMEMLIMIT", f"{number}{unit.upper()}iB")):
        text = f"spec:\n  env:\n    - name: {name}\n      value: {value}\n".encode()
        shortcut = written(text, dict)
        assert shortcut is not None
        assert shortcut.harmless_bytes is not None
        (setting,) = memory_settings({"env": [{"name": name, "value": value}]}, "spec.containers[0]", {})
        assert setting.amount_bytes is not None
        fits = setting.amount_bytes <= limit_bytes * (0.8 if name == "JAVA_OPTS" else 1)
        assert fits or limit_bytes < shortcut.harmless_bytes
