"""``podqos drift``: directories, revisions of a real git repository, outputs; and two versions of pods as values."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from admission.pods import container, pod
from podqos.cli.main import main
from podqos.eviction.ranking import Ranking, Spared
from podqos.eviction.signals import RankKey, Signal
from podqos.model.pod import ObjectMeta, Pod, QOSClass
from podqos.model.snapshot import NodeUsage, Snapshot
from podqos.orders.drift import DriftStatus, Identity, ManifestVersion, Order, VersionWorkload, WorkloadDrift
from podqos.orders.drift import drift as compared
from podqos.orders.orders import KillKey
from podqos.orders.usage import assumed_usage
from podqos.orders.versions import DifferenceKind
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.questions.drift import MOST_CHARACTERS

ROOT = Path(__file__).parents[2]
SCENARIO = ROOT / "scenarios" / "content-platform"
ARTICLE = "Deployment production/article-service"

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  template:
    metadata:
      annotations: {annotations}
    spec:
      containers:
      - name: app
        image: app:1
        resources: {resources}
"""
FIXED = "{limits: {cpu: 1, memory: 1Gi}}"
LOOSE = "{requests: {memory: 1Gi}}"


def deployment(name: str = "web", resources: str = FIXED, annotations: str = "{}") -> str:
    return DEPLOYMENT.format(name=name, resources=resources, annotations=annotations)


def drift(capsys, *arguments: object) -> tuple[int, str, str]:
    """Run the command and return exit code, standard output and standard error."""
    code = main(["drift", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def drift_json(capsys, *arguments: object) -> tuple[int, dict[str, dict]]:
    """Run it and return the exit code and the workloads by name."""
    code, out, _ = drift(capsys, *arguments, "-o", "json")
    return code, {each["name"]: each for each in json.loads(out)["workloads"]}


@pytest.fixture
def before(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SCENARIO / "platform", tmp_path / "before"))


@pytest.fixture
def after(tmp_path: Path) -> Path:
    """Return the platform with article-service as it was on the day of the incident."""
    folder = Path(shutil.copytree(SCENARIO / "platform", tmp_path / "after"))
    shutil.copy(SCENARIO / "accidental" / "article-service.yaml", folder)
    return folder


@pytest.fixture
def repository(tmp_path: Path, monkeypatch) -> Path:
    """Make a repository with the platform, then the incident on top of it."""
    folder = tmp_path / "repository"
    shutil.copytree(SCENARIO / "platform", folder / "deploy")
    for name in list(os.environ):
        if name.startswith("GIT_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(folder)
    git("init", "-q", "-b", "main")
    (folder / "deploy" / ".hidden").mkdir()
    (folder / "deploy" / ".hidden" / "broken.yaml").write_text("kind: [")
    (folder / "deploy" / "notes.txt").write_text("no manifest")
    (folder / "deploy" / "link.yaml").symlink_to("notes.txt")
    commit("first")
    shutil.copy(SCENARIO / "accidental" / "article-service.yaml", folder / "deploy")
    commit("second")
    return folder


def git(*arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *arguments], check=True, capture_output=True)


def commit(message: str) -> None:
    git("add", ".")
    git("commit", "-qm", message)


def test_the_incident_is_seen_before_it_happens(capsys, before, after):
    """A sidecar and no priority: one downgrade, told with its cause, and exit code 1."""
    code, workloads = drift_json(capsys, before, after, "--node-memory", "64Gi")
    article = workloads["article-service"]
    assert code == 1
    assert (article["status"], article["fails"]) == ("downgraded", True)
    assert [each["text"] for each in article["differences"]] == [
        "container envoy-sidecar was added",
        "priority 1000000 → 0",
    ]
    assert (article["before"]["evictionPlace"], article["after"]["evictionPlace"]) == (7, 3)
    assert "now evicted before Deployment batch/analytics-pipeline (lower priority)" in [
        each["text"] for each in article["movedAhead"]
    ]
    assert [name for name, each in workloads.items() if each["fails"]] == ["article-service"]


def test_no_difference_is_exit_code_0(capsys, before):
    code, out, _ = drift(capsys, before, before)
    assert code == 0
    assert out.startswith("No workload changed class, score or place in a kill order (8 compared).")


def test_the_way_back_shifts_the_others_and_says_so(capsys, before, after):
    """Nobody else was changed."""
    code, workloads = drift_json(capsys, after, before)
    assert code == 1
    assert workloads["article-service"]["status"] == "upgraded"
    shifted = workloads["analytics-pipeline"]
    assert not shifted["differences"]
    assert all(each["text"].endswith(f"only {ARTICLE} changed") for each in shifted["movedAhead"])


def test_a_workload_may_be_allowed_to_be_worse_off(capsys, before, after):
    code, workloads = drift_json(capsys, before, after, "--allow", "production/article-service")
    assert code == 0
    assert (workloads["article-service"]["status"], workloads["article-service"]["fails"]) == ("downgraded", False)
    code, _, err = drift(capsys, before, after, "--allow", "nobody")
    assert code == 2
    assert "no such workload: nobody" in err


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("HEAD~1:deploy", "deploy", id="revision-and-directory"),
        pytest.param("HEAD~1:deploy/", "HEAD:deploy", id="two-revisions"),
        pytest.param("main~1:", "main:", id="the-whole-tree"),
        pytest.param("HEAD~1:./deploy", ".", id="from-here"),
    ],
)
def test_versions_can_be_git_revisions(capsys, repository, old, new):
    """Hidden directories, links and other files are left out, as in a directory."""
    code, workloads = drift_json(capsys, old, new, "--node-memory", "64Gi")
    assert code == 1
    assert len(workloads) == 8
    assert [name for name, each in workloads.items() if each["fails"]] == ["article-service"]


@pytest.mark.parametrize(
    ("old", "message"),
    [
        pytest.param("HEAD~9:deploy", "git has no revision 'HEAD~9'", id="unknown-revision"),
        pytest.param("HEAD:none", "no such path in HEAD", id="unknown-path"),
        pytest.param(":deploy", "no revision before the colon", id="no-revision"),
        pytest.param("--all:deploy", "", id="an-option"),
        pytest.param("none", "No such file or directory", id="no-file"),
        pytest.param("HEAD:deploy/.hidden", "broken.yaml", id="broken-manifest"),
    ],
)
def test_what_git_does_not_know_is_bad_input(capsys, repository, old, message):
    """One line, exit code 2."""
    code, _, err = drift(capsys, old, "deploy")
    assert code == 2
    assert message in err
    assert "Traceback" not in err


def test_outside_a_repository_a_revision_is_no_file(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.chdir(tmp_path)
    code, _, err = drift(capsys, "HEAD:deploy", "deploy")
    assert code == 2
    assert "no such file, and this is not a git repository" in err


def test_without_git_the_machine_is_at_fault(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    code, _, err = drift(capsys, "HEAD:deploy", "deploy")
    assert code == 3
    assert "cannot run git" in err


def test_injection_comes_before_the_comparison(capsys, tmp_path):
    """A Guaranteed manifest that linkerd makes Burstable, and annotations that put it right again."""
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    limits = '{config.linkerd.io/proxy-cpu-limit: "1", config.linkerd.io/proxy-memory-limit: 64Mi}'
    old.write_text(deployment(annotations=limits))
    new.write_text(deployment())
    assert drift_json(capsys, old, new)[0] == 0
    code, workloads = drift_json(capsys, old, new, "--inject", "linkerd")
    assert code == 1
    assert workloads["web"]["status"] == "downgraded"
    assert {each["text"] for each in workloads["web"]["differences"]} >= {"linkerd-proxy: limits.memory 64Mi → none"}


def test_an_injected_container_is_told_with_its_injector(capsys, tmp_path):
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text(deployment(annotations='{sidecar.istio.io/inject: "false"}'))
    new.write_text(deployment())
    _, workloads = drift_json(capsys, old, new, "--inject", "istio")
    assert "container istio-proxy was injected by istio" in [each["text"] for each in workloads["web"]["differences"]]


def test_a_limit_range_beside_the_manifests_counts(capsys, tmp_path):
    """The manifest is the same, the namespace is not."""
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "web.yaml").write_text(deployment(resources="{}"))
    (tmp_path / "new" / "limits.yaml").write_text(
        "apiVersion: v1\nkind: LimitRange\nmetadata: {name: l}\n"
        "spec: {limits: [{type: Container, default: {memory: 1Gi}, defaultRequest: {memory: 1Gi}}]}\n"
    )
    code, workloads = drift_json(capsys, tmp_path / "old", tmp_path / "new")
    assert (code, workloads["web"]["status"]) == (0, "upgraded")


def test_a_usage_file_is_the_same_for_both_versions(capsys, before, after):
    """A row without a container means the one there was before the sidecar."""
    usage = ("--usage", SCENARIO / "usage.csv", "--node-memory", "64Gi")
    code, workloads = drift_json(capsys, before, after, *usage)
    assert code == 1
    # 3Gi of 4Gi+128Mi are within the request, 6Gi of 4130Mi are not: analytics-pipeline stays ahead of it.
    assert (workloads["article-service"]["before"]["evictionPlace"]) == 8
    ahead = {each["outlives"] for each in workloads["article-service"]["movedAhead"] if each["order"] == "eviction"}
    assert "Deployment batch/analytics-pipeline" not in ahead
    assert "StatefulSet batch/search-indexer" in ahead


def test_usage_of_a_pod_of_neither_version_is_bad_input(capsys, before, tmp_path):
    usage = tmp_path / "usage.csv"
    usage.write_text("pod,memory\nnobody,1Gi\n")
    code, _, err = drift(capsys, before, before, "--usage", usage)
    assert code == 2
    assert "usage.csv:2: no such pod: nobody" in err


def test_the_size_of_the_node_does_not_depend_on_this_machine(capsys, before, tmp_path):
    """It is given, that of a Node beside the manifests, or 64Gi."""

    def size(*arguments: object) -> int:
        return json.loads(drift(capsys, before, before, "-o", "json", *arguments)[1])["nodeMemoryBytes"] >> 30

    assert size() == 64
    assert size("--node-memory", "128Gi") == 128
    shutil.copy(SCENARIO / "node" / "nodes.yaml", before)
    (before / "nodes.yaml").write_text((before / "nodes.yaml").read_text().replace("memory: 64Gi", "memory: 96Gi"))
    assert size() == 96


def test_an_error_in_a_manifest_is_bad_input(capsys, tmp_path):
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text(deployment())
    new.write_text(deployment(resources="{request: {cpu: 1}}"))
    code, _, err = drift(capsys, old, new)
    assert code == 2
    assert "new.yaml:12:" in err


def test_csv_has_a_row_for_every_workload(capsys, before, after):
    _, out, _ = drift(capsys, before, after, "-o", "csv")
    rows = {row["workload"]: row for row in csv.DictReader(io.StringIO(out))}
    assert len(rows) == 8
    found = rows[ARTICLE]
    assert (found["status"], found["qosClassBefore"], found["qosClass"]) == ("downgraded", "Guaranteed", "Burstable")
    assert (found["evictionPlaceBefore"], found["evictionPlace"]) == ("7", "3")


def test_markdown_is_a_table_with_folded_reasons(capsys, before, after):
    code, out, _ = drift(capsys, before, after, "-o", "markdown", "--node-memory", "64Gi")
    assert code == 1
    assert f"| `{ARTICLE}` | **downgraded** | Guaranteed → Burstable | `-997 → 999 (envoy-sidecar)` |" in out
    assert out.count("<details>") == out.count("</details>") == 1
    rows = [line for line in out.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in rows} == {8}


def test_markdown_of_a_thousand_workloads_fits_into_a_comment_and_mentions_nobody(capsys, tmp_path):
    names = [f"service-with-a-rather-long-name-{number}" for number in range(600)]
    for version, resources in (("old", FIXED), ("new", LOOSE)):
        text = "---\n".join(deployment(name, resources) for name in names)
        (tmp_path / f"{version}@team.yaml").write_text(text)
    code, out, _ = drift(capsys, tmp_path / "old@team.yaml", tmp_path / "new@team.yaml", "-o", "markdown")
    assert code == 1
    assert 40_000 < len(out) < MOST_CHARACTERS
    assert "more workloads" in out
    outside = "".join(part for index, part in enumerate(out.split("`")) if index % 2 == 0)
    assert "@" not in outside


def test_a_change_of_resources_says_how_running_pods_get_it(tmp_path, capsys):
    text = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n"
        "  - {name: app, image: a, resources: {requests: {memory: 1Gi}, limits: {memory: %s}}}\n"
    )
    (tmp_path / "old.yaml").write_text(text % "4Gi")
    (tmp_path / "new.yaml").write_text(text % "2Gi")
    command = ["drift", str(tmp_path / "old.yaml"), str(tmp_path / "new.yaml")]
    assert main(command) == 0
    assert "running pods can be resized in place, without a restart" in capsys.readouterr().out
    assert main([*command, "--kubernetes-version", "1.33"]) == 0
    assert "needs new pods: the API server rejects a resize" in capsys.readouterr().out


# ---- what has to be rendered ---------------------------------------------------------------------------------------


@pytest.fixture
def overlays(repository: Path, monkeypatch) -> Path:
    """Make an overlay whose base, elsewhere in the repository, gets looser from one revision to the next.

    The program that renders prints the base that is where it runs, and notes where that was.
    """
    (repository / "base").mkdir()
    (repository / "overlay").mkdir()
    (repository / "overlay" / "kustomization.yaml").write_text("resources: [../base]\n")
    (repository / "base" / "kustomization.yaml").write_text("resources: [web.yaml]\n")
    (repository / "base" / "web.yaml").write_text(deployment())
    commit("fixed")
    (repository / "base" / "web.yaml").write_text(deployment(resources=LOOSE))
    commit("loose")
    tools = repository.parent / "tools"
    tools.mkdir()
    script = f'#!/bin/sh\necho "$2" >> {tools}/ran\ncat "$2/../base/web.yaml"\n'
    (tools / "kubectl").write_text(script)
    (tools / "kubectl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    return tools


def test_an_overlay_of_two_revisions_is_rendered_with_the_base_of_each(capsys, overlays, repository):
    code, workloads = drift_json(capsys, "HEAD~1:overlay", "HEAD:./overlay", "--render")
    assert (code, workloads["web"]["status"]) == (1, "downgraded")
    ran = (overlays / "ran").read_text().splitlines()
    assert len(ran) == 2
    assert not any(str(repository) in where or Path(where).exists() for where in ran)


def test_a_revision_is_compared_with_the_working_tree_rendered_alike(capsys, overlays, repository):
    (repository / "base" / "web.yaml").write_text(deployment())
    code, workloads = drift_json(capsys, "HEAD:overlay", "overlay", "--render")
    assert (code, workloads["web"]["status"]) == (0, "upgraded")
    assert (overlays / "ran").read_text().splitlines()[1] == "overlay"


def test_without_render_nothing_runs_and_the_option_is_named(capsys, overlays):
    code, _, err = drift(capsys, "HEAD~1:overlay", "HEAD:overlay")
    assert code == 2
    assert "HEAD:overlay: warning: skipped: it must be rendered first (add --render)" in err
    assert not (overlays / "ran").exists()


def test_rendering_a_revision_leaves_the_repository_alone(capsys, overlays, repository):
    (repository / ".git" / "hooks" / "post-index-change").write_text(f"#!/bin/sh\ntouch {overlays}/hook\n")
    (repository / ".git" / "hooks" / "post-index-change").chmod(0o755)
    (repository / "base" / "web.yaml").write_text("not yet: done\n")
    index = (repository / ".git" / "index").read_bytes()
    assert drift(capsys, "HEAD~1:overlay", "HEAD:overlay", "--render")[0] == 1
    assert (repository / ".git" / "index").read_bytes() == index
    assert not (overlays / "hook").exists()
    assert (repository / "base" / "web.yaml").read_text() == "not yet: done\n"


def test_a_revision_that_cannot_be_rendered_is_named_as_it_was_given(capsys, overlays):
    (overlays / "kubectl").write_text('#!/bin/sh\necho "no base in $2" >&2\nexit 1\n')
    code, _, err = drift(capsys, "HEAD~1:overlay", "HEAD:overlay", "--render")
    assert code == 2
    assert (
        "HEAD:overlay: error: cannot render this kustomization\n"
        "    $ kubectl kustomize HEAD:overlay\n"
        "    no base in HEAD:overlay\n"
    ) in err
    assert "Traceback" not in err


# ---- two versions as values ------------------------------------------------------------------------------------------

GI = 1 << 30
NODE = NodeUsage(64 * GI)


def one(requests: str = "", limits: str = "", priority: int | None = None, *more, **spec) -> Pod:
    """Make a pod of a container ``app`` and what else there is."""
    return pod(container("app", requests=requests, limits=limits), *more, priority=priority, **spec)


GUARANTEED = one("cpu=1,memory=4Gi", "cpu=1,memory=4Gi", 1000)
BURSTABLE = one("cpu=1,memory=4Gi", "cpu=2,memory=8Gi", 1000)
BATCH = one("cpu=1,memory=8Gi", "", 100)
BEST_EFFORT = one(priority=0)


def compare(old: dict[str, Pod], new: dict[str, Pod]) -> dict[str, WorkloadDrift]:
    """Compare versions of one pod per workload, each using what its older version requests."""
    found = compared(
        _version(old, old), _version(new, old), Ranking(Signal.MEMORY), CgroupSettings(node_memory_bytes=64 * GI)
    )
    return {each.name: each for each in found}


def _version(pods: dict[str, Pod], older: dict[str, Pod]) -> ManifestVersion:
    named = {name: replace(each, metadata=ObjectMeta(name, "prod", uid=name)) for name, each in pods.items()}
    return ManifestVersion(
        tuple(VersionWorkload(Identity("prod", "Deployment", name), each, (name,)) for name, each in named.items()),
        Snapshot(NODE, tuple(assumed_usage(each, older.get(name)) for name, each in named.items())),
    )


def turns(found: WorkloadDrift) -> set[tuple[Order, str]]:
    """Return whom a workload goes before now, in which order."""
    return {(move.order, move.outlives.rpartition("/")[2]) for move in found.moved_ahead}


def test_a_lower_class_is_a_downgrade_with_its_cause():
    """The incident: a sidecar without limits makes a Guaranteed pod the kernel's choice before the batch jobs."""
    sidecar = container("logger")
    with_sidecar = replace(GUARANTEED, spec=replace(GUARANTEED.spec, containers=(*GUARANTEED.spec.containers, sidecar)))
    found = compare({"web": GUARANTEED, "batch": BATCH}, {"web": with_sidecar, "batch": BATCH})
    web = found["web"]
    assert web.status is DriftStatus.DOWNGRADED
    assert web.before is not None
    assert web.after is not None
    assert (web.before.qos_class, web.after.qos_class) == (QOSClass.GUARANTEED, QOSClass.BURSTABLE)
    assert [(score.container, score.oom_score_adj) for score in web.before.scores] == [("app", -997)]
    assert [(score.container, score.oom_score_adj) for score in web.after.scores] == [("app", 938), ("logger", 999)]
    assert [(each.kind, each.container) for each in web.differences] == [(DifferenceKind.CONTAINER_ADDED, "logger")]
    # 4096Mi and 938 thousandths of 65536Mi are 65568Mi; 8192Mi and 875 thousandths are 65536Mi. And the 64Mi of the
    # logger put web over its request, which batch is not.
    assert turns(web) == {(Order.EVICTION, "batch"), (Order.KERNEL, "batch")}
    assert found["batch"].status is DriftStatus.BACK


def test_a_higher_class_is_an_upgrade_and_others_are_said_to_be_shifted():
    """In a tie of the kernel's, the later name goes first: it moves up although nothing changed in it."""
    found = compare({"api": BURSTABLE, "web": BURSTABLE}, {"api": BURSTABLE, "web": GUARANTEED})
    assert found["web"].status is DriftStatus.UPGRADED
    other = found["api"]
    assert other.is_shifted
    assert turns(other) == {(Order.KERNEL, "web")}
    (move,) = other.moved_ahead
    assert (move.first_changed, move.other_changed, move.key) == (False, True, KillKey.ADJUSTMENT)
    assert [each.goes_first for each in found["web"].moved_back] == ["Deployment prod/api"]


def test_a_lower_request_moves_ahead_in_both_orders_without_another_class():
    smaller = one("cpu=1,memory=2Gi", "cpu=2,memory=8Gi", 1000)
    web = compare({"web": BURSTABLE, "other": BURSTABLE}, {"web": smaller, "other": BURSTABLE})["web"]
    assert web.status is DriftStatus.AHEAD
    assert not web.is_shifted, "by a change of its own"
    assert turns(web) == {(Order.EVICTION, "other"), (Order.KERNEL, "other")}
    assert {move.order: move.key for move in web.moved_ahead} == {
        Order.EVICTION: RankKey.OVER_REQUEST,
        Order.KERNEL: KillKey.ADJUSTMENT,
    }
    (change,) = web.differences
    assert (change.kind, change.container, change.field, change.before, change.after) == (
        DifferenceKind.AMOUNT,
        "app",
        "requests.memory",
        "4Gi",
        "2Gi",
    )


def test_equal_pods_are_ahead_of_nobody():
    """Their order is that of their names, and no reason to fail."""
    found = compare({"b": BURSTABLE, "c": BURSTABLE}, {"a": BURSTABLE, "b": BURSTABLE, "c": BURSTABLE})
    assert {name: each.status for name, each in found.items()} == {
        "a": DriftStatus.ADDED,
        "b": DriftStatus.UNCHANGED,
        "c": DriftStatus.UNCHANGED,
    }


def test_a_pod_that_is_no_longer_critical_can_be_evicted():
    """The kubelet evicts it before others that it never could before."""
    critical = replace(BURSTABLE, spec=replace(BURSTABLE.spec, priority=2_000_000_000))
    high = replace(BURSTABLE, spec=replace(BURSTABLE.spec, priority=1_999_999_999))
    found = compare({"a": critical, "b": critical}, {"a": high, "b": critical})
    (move,) = found["a"].moved_ahead
    assert (move.order, move.spared) == (Order.EVICTION, Spared.CRITICAL)


def test_a_workload_without_pods_stands_nowhere():
    identity = Identity("prod", "Deployment", "idle")
    idle = ManifestVersion((VersionWorkload(identity, GUARANTEED),), Snapshot(NODE, ()))
    (found,) = compared(idle, idle, Ranking(Signal.MEMORY), CgroupSettings(node_memory_bytes=64 * GI))
    assert found.status is DriftStatus.UNCHANGED
    assert found.before is not None
    standing = found.before
    assert (standing.qos_class, standing.eviction_place, standing.kernel_place) == (QOSClass.GUARANTEED, None, None)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(one("memory=1Gi"), one("memory=1Gi,cpu=1"), {("requests.cpu", None, "1")}, id="a-request-more"),
        pytest.param(one("memory=1Gi"), one("memory=1024Mi"), set(), id="another-spelling-is-no-difference"),
        pytest.param(one("memory=1Gi", "nvidia.com/gpu=1"), one("memory=1Gi"), set(), id="what-no-judge-looks-at"),
        pytest.param(one("", "memory=1Gi"), one(), {("limits.memory", "1Gi", None)}, id="a-limit-less"),
    ],
)
def test_differences_are_those_the_judges_can_see(before, after, expected):
    found = compare({"a": before}, {"a": after})["a"].differences
    assert {(each.field, each.before, each.after) for each in found} == expected


SIZES = st.sampled_from(["", "memory=64Mi", "memory=1Gi", "memory=4Gi", "cpu=1,memory=4Gi"])
PODS = st.builds(
    lambda requests, is_fixed, priority: one(requests, requests if is_fixed else "", priority),
    SIZES,
    st.booleans(),
    st.sampled_from([0, 100, 1000]),
)
VERSIONS = st.dictionaries(st.sampled_from("abcdef"), PODS, min_size=1)


@given(VERSIONS, VERSIONS)
def test_every_turn_has_a_change_in_one_of_the_two(old, new):
    """What a pod is in an order depends on itself alone."""
    for each in compare(old, new).values():
        for move in each.moved_ahead:
            assert move.first_changed or move.other_changed
            assert move.goes_first == each.workload == str(each.identity)


@given(VERSIONS, VERSIONS)
def test_the_verdict_agrees_with_the_numbers(old, new):
    """Worse only if something is worse, better only if something is better, and mixed only if both are."""
    for each in compare(old, new).values():
        if each.before is None or each.after is None:
            assert not each.fails
            continue
        forward = [each.eviction_shift, each.kernel_shift]
        places = [
            one - other
            for one, other in (
                (each.before.eviction_place, each.after.eviction_place),
                (each.before.kernel_place, each.after.kernel_place),
            )
        ]
        if each.status in {DriftStatus.AHEAD, DriftStatus.DOWNGRADED} or each.fails:
            assert each.protection < 0 or any(shift >= 0 for shift in forward)
        if each.status is DriftStatus.AHEAD:
            assert any(shift > 0 for shift in forward)
            assert not any(place < 0 < shift for shift, place in zip(forward, places, strict=True))
        if each.status in {DriftStatus.UPGRADED, DriftStatus.BACK}:
            assert not each.fails
            assert each.protection > 0 or any(shift < 0 for shift in forward)
            assert not any(place > 0 > shift for shift, place in zip(forward, places, strict=True))
        if not each.differences and each.status in {DriftStatus.AHEAD, DriftStatus.BACK}:
            way = 1 if each.status is DriftStatus.AHEAD else -1
            assert any(place * way > 0 for place in places)
        if not each.differences and each.status is DriftStatus.UNCHANGED:
            assert not each.fails


@given(VERSIONS, VERSIONS)
def test_what_one_gains_in_an_order_others_lose(old, new):
    found = compare(old, new).values()
    assert sum(each.eviction_shift for each in found) == 0
    assert sum(each.kernel_shift for each in found) == 0


def test_a_pod_that_moves_behind_many_and_ahead_of_one_is_better():
    """All were level. It is sized, and so is another, whose request covers what it uses."""
    old = dict.fromkeys("abcde", BEST_EFFORT)
    new = old | {"a": one("memory=32Mi"), "b": one("memory=64Mi")}
    found = compare(old, new)["a"]
    assert (Order.EVICTION, "b") in turns(found)
    assert (found.status, found.fails, found.eviction_shift) == (DriftStatus.UPGRADED, False, -1)


def test_earlier_in_one_order_and_later_in_the_other_is_mixed():
    """The kubelet looks at priority, the kernel at the request."""
    start, other = one("memory=1Gi", "", 100), one("memory=2Gi", "", 50)
    found = compare({"a": start, "b": other}, {"a": one("memory=4Gi", "", 10), "b": other})["a"]
    assert (found.worse_orders, found.better_orders) == ((Order.EVICTION,), (Order.KERNEL,))
    assert (found.status, found.fails) == (DriftStatus.MIXED, True)


@given(VERSIONS)
def test_going_back_and_forth_changes_nothing(version):
    assert {each.status for each in compare(version, version).values()} == {DriftStatus.UNCHANGED}
