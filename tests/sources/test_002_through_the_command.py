"""Source 002 through the command: what a reader of "QoS Classes and the Scheduling Decision" would type."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from podqos.cli.main import main
from podqos.reading.shipped_scenarios import scenario_dir

PLATFORM = scenario_dir("content-platform") / "platform"
PODS = """\
apiVersion: v1
kind: Pod
metadata: {name: article-service}
spec: {containers: [{name: app, image: app:1, resources: {limits: {cpu: 2, memory: 4Gi}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: log-collector}
spec: {containers: [{name: app, image: app:1}]}
"""
USAGE = "pod,memory\narticle-service,3Gi\nlog-collector,{log_collector}\n"


@pytest.fixture
def run(tmp_path: Path, capsys, monkeypatch):
    """Run a command beside the two pods and what they use; return its exit code and what it prints."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pods.yaml").write_text(PODS)
    (tmp_path / "usage.csv").write_text(USAGE.format(log_collector="250Mi"))

    def of(*arguments: str) -> tuple[int, str, str]:
        code = main([*arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return of


# The document counts in GB and MB, which are no quantities of Kubernetes.


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["rank", "pods.yaml", "--node-memory", "64GB"], "64Gi or 64G"),
        (["forecast", "pods.yaml", "--growing", "log-collector", "--rate", "4GB/s"], "4Gi/s or 4G/s"),
        (["thresholds", "--eviction-hard", "memory.available<500MB"], "500Mi or 500M"),
        (["thresholds", "--system-reserved", "memory=2GB"], "2Gi or 2G"),
        (["place", "pods.yaml", "--nodes", "1", "--node-capacity", "cpu=16,memory=64GB"], "64Gi or 64G"),
        (["simulate", "race", "--what-if", "requests.memory@article-service=4GB"], "4Gi or 4G"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_an_amount_in_gb_is_refused_with_the_quantities_that_may_be_meant(run, arguments, meant):
    code, out, err = run(*arguments)

    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert f"(did you mean {meant}?)" in err


def test_usage_of_250mb_is_refused_with_its_line_and_what_may_be_meant(run, tmp_path):
    (tmp_path / "usage.csv").write_text(USAGE.format(log_collector="250MB"))

    code, _, err = run("rank", "pods.yaml", "--usage", "usage.csv")

    assert code == 2
    assert err.startswith("podqos: error: usage.csv:3: memory: ")
    assert err.endswith("(did you mean 250Mi or 250M?)\n")


def test_8gi_in_2_seconds_is_a_rate_and_the_kernel_comes_before_the_kubelet_looks(run):
    """The document: a container that allocates 8GB in 2 seconds."""
    node = ["--usage", "usage.csv", "--node-memory", "8Gi", "--growing", "log-collector"]
    code, out, _ = run("forecast", "pods.yaml", *node, "--rate", "8Gi/2s")

    assert code == 0
    assert "default/log-collector (app) grows by 4Gi/s" in out
    assert "100 %  the kernel kills default/log-collector" in out
    assert run("forecast", "pods.yaml", *node, "--rate", "8Gi/soon")[2] == (
        "podqos: error: --rate: '8Gi/soon' is not a valid rate (for example 128Mi/s, 2Gi/h or 8Gi/2s)\n"
    )


# The manifests as the page prints them: without indentation. Whatever follows from that, it is said once an object.

SLOW = """\
# SLOW: accidentally Burstable
# The sidecar container has no limits, downgrading the entire pod
apiVersion: v1
kind: Pod
metadata:
name: article-service
spec:
containers:
- name: article-service
resources:
requests:
cpu: "2"
memory: "4Gi"
limits:
cpu: "2"
memory: "4Gi"
- name: envoy-sidecar
resources:
requests:
cpu: "100m"
memory: "128Mi"
# Missing limits: entire pod becomes Burstable
"""
LIMIT_RANGE = """\
# LimitRange in the production namespace
apiVersion: v1
kind: LimitRange
metadata:
name: default-limits
namespace: production
spec:
limits:
- default:
cpu: "1"
memory: "512Mi"
defaultRequest:
cpu: "100m"
memory: "128Mi"
type: Container
"""
PRIORITY_CLASSES = """\
# Priority class for latency-sensitive services
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata:
name: latency-critical
value: 1000000
globalDefault: false
description: "For services where eviction causes user-visible degradation"
---
# Priority class for batch workloads
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata:
name: batch-processing
value: 100000
globalDefault: false
description: "For workloads that tolerate restarts"
"""
DEPLOYMENT = """\
# Article service with priority class
apiVersion: apps/v1
kind: Deployment
metadata:
name: article-service
spec:
template:
spec:
priorityClassName: latency-critical
containers:
- name: article-service
resources:
requests:
cpu: "2"
memory: "4Gi"
limits:
cpu: "2"
memory: "4Gi"
"""


@pytest.mark.parametrize("name", ["explain", "check", "admit", "rank"])
@pytest.mark.parametrize(
    ("printed", "lines"),
    [
        (SLOW, [6]),
        (SLOW.replace("metadata:\n", "metadata:\nnamespace: production\n"), [7]),
        (LIMIT_RANGE, [5]),
        (PRIORITY_CLASSES, [5, 14]),
        (DEPLOYMENT, [5]),
    ],
    ids=["Pod", "Pod with a namespace", "LimitRange", "PriorityClasses", "Deployment"],
)
def test_a_manifest_as_printed_has_lost_its_indentation_and_that_is_the_one_error(command, name, printed, lines):
    code, _, err = command(name, printed)

    assert code == 2
    assert [line for line in err.splitlines() if line.startswith("example.yaml:")] == [
        f'example.yaml:{line}:1: error: the indentation is wrong: "name" is next to "metadata", not below it '
        "(indent it, and everything below metadata and spec, by two spaces)"
        for line in lines
    ]


def test_a_kustomization_may_have_a_namespace_beside_its_metadata(command):
    text = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nmetadata:\nnamespace: production\n"

    assert "indentation" not in command("explain", text)[2]


# The configuration matrix, in the words of its table.

MATRIX = """\
article-service     Yes  High    Steady  Guaranteed  1000000
search-api          Yes  Medium  Spiky   Guaranteed  1000000
cdn-origin          Yes  Low     Steady  Guaranteed  500000
analytics-pipeline  No   Low     Bursty  Burstable   100000
content-generator   No   Low     Bursty  Burstable   100000
search-indexer      No   Medium  Bursty  Burstable   200000
log-collector       No   None    Steady  BestEffort  0
debug-tools         No   None    N/A     BestEffort  0
"""


def test_the_matrix_in_the_words_of_its_table_gives_class_and_priority_of_every_row(run, tmp_path):
    rows = [line.split() for line in MATRIX.splitlines()]
    described = "".join(
        f"- {{name: {name}, latencySensitive: {waits}, restartCost: {cost}, burstPattern: {bursts}}}\n"
        for name, waits, cost, bursts, *_ in rows
    )
    (tmp_path / "matrix.yaml").write_text(described)

    code, out, _ = run("advise", str(PLATFORM), "--describe", "matrix.yaml", "-o", "json")

    assert code == 0
    advised = {
        each["workload"].rpartition("/")[2]: (each["wantedClass"], each["after"]["priority"])
        for each in json.loads(out)["workloads"]
    }
    assert advised == {name: (expected, int(priority)) for name, *_, expected, priority in rows}


def test_a_word_that_the_matrix_does_not_have_is_refused_with_the_nearest(run, tmp_path):
    entry = "name: log-collector, latencySensitive: No, restartCost: Hihg"
    (tmp_path / "matrix.yaml").write_text(f"- {{{entry}}}\n")

    code, _, err = run("advise", "pods.yaml", "--describe", "matrix.yaml")

    assert code == 2
    assert err.endswith("restartCost: 'Hihg' is not one of none, low, medium, high (write high)\n")


# The manifests indented, and otherwise as printed: no images, and a Deployment without selector and labels.

SLOW_INDENTED = """\
apiVersion: v1
kind: Pod
metadata:
  name: article-service
spec:
  containers:
  - name: article-service
    resources:
      requests:
        cpu: "2"
        memory: "4Gi"
      limits:
        cpu: "2"
        memory: "4Gi"
  - name: envoy-sidecar
    resources:
      requests:
        cpu: "100m"
        memory: "128Mi"
      # Missing limits: entire pod becomes Burstable
"""
FAST_INDENTED = f"""\
{SLOW_INDENTED.rpartition("      #")[0]}\
      limits:
        cpu: "100m" # Matches request
        memory: "128Mi" # Matches request
"""
DEPLOYMENT_INDENTED = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: article-service
spec:
  template:
    spec:
      priorityClassName: latency-critical
      containers:
      - name: article-service
        resources:
          requests:
            cpu: "2"
            memory: "4Gi"
          limits:
            cpu: "2"
            memory: "4Gi"
"""
NODE = ("--nodes", "1", "--node-capacity", "cpu=16,memory=64Gi")
OF_COMMAND = {
    "explain": (),
    "rank": (),
    "place": NODE,
    "cpu": ("--cores", "4"),
    "forecast": ("--growing", "article-service:article-service", "--rate", "1Gi/s"),
    "blast": (),
}


@pytest.mark.parametrize("name", [*OF_COMMAND])
@pytest.mark.parametrize(
    ("manifest", "place"),
    [
        (SLOW_INDENTED, "7:5: warning: spec.containers[0].image: Required value"),
        (FAST_INDENTED, "7:5: warning: spec.containers[0].image: Required value"),
        (DEPLOYMENT_INDENTED, "5:1: warning: spec.selector: Required value"),
    ],
    ids=["SLOW", "FAST", "Deployment"],
)
def test_a_manifest_without_images_is_answered_and_warned_about_once_in_every_command(command, name, manifest, place):
    code, out, err = command(name, manifest, *OF_COMMAND[name])

    assert code == 0
    assert out
    (warning,) = [line for line in err.splitlines() if line.startswith("example.yaml:")]
    assert warning.startswith(f"example.yaml:{place}")
    assert warning.endswith("(the API server rejects it, see `podqos admit`; this answer doesn't depend on it)")


@pytest.mark.parametrize(
    ("manifest", "place"),
    [
        (SLOW_INDENTED, ("example.yaml:7:5", "spec.containers[0].image: Required value")),
        (DEPLOYMENT_INDENTED, ("example.yaml:5:1", "spec.selector: Required value")),
    ],
    ids=["Pod", "Deployment"],
)
def test_check_reports_it_as_an_error(command, manifest, place):
    code, out, err = command("check", manifest)

    assert code == 1
    assert "error PQ127 rejected-object" in out
    assert all(part in out for part in place)
    assert "example.yaml:" not in err


@pytest.mark.parametrize("manifest", [SLOW_INDENTED, DEPLOYMENT_INDENTED], ids=["Pod", "Deployment"])
def test_admit_rejects_a_manifest_without_images(command, manifest):
    code, out, _ = command("admit", manifest)

    assert code == 1
    assert "rejected, 422 Invalid" in out
    assert "containers[0].image: Required value" in out


def test_the_two_lines_of_the_fix_are_what_drift_shows_between_slow_and_fast(run, tmp_path):
    (tmp_path / "slow.yaml").write_text(SLOW_INDENTED)
    (tmp_path / "fast.yaml").write_text(FAST_INDENTED)

    code, out, _ = run("drift", "slow.yaml", "fast.yaml")

    assert code == 0
    assert "Burstable → Guaranteed  999 (envoy-sidecar) → -997" in out
    assert "  envoy-sidecar: limits.cpu none → 100m\n  envoy-sidecar: limits.memory none → 128Mi\n" in out
    assert "the API server rejects a resize (Pod QOS Class may not change as a result of resizing)" in out


# The timeline of a memory pressure event: every time of the document, which counts in GB what is GiB here.


@pytest.mark.parametrize(
    ("until", "left"),
    [("0.2s", "6Gi"), ("0.5s", "2Gi"), ("0.8s", "512Mi"), ("1.1s", "277Mi"), ("2s", "72Mi")],
    ids=["the job starts", "2GB available", "500MB available", "250MB freed", "continues rising"],
)
def test_a_run_that_is_cut_short_shows_what_was_left_at_that_time(run, until, left):
    code, out, _ = run("simulate", "race", "--until", until)

    moment = f"{float(until[:-1]):.3f} s"
    assert code == 0
    assert out.startswith(f"race  {'2 s' if until == '2s' else moment} · ")
    (last,) = [line.split() for line in out.splitlines() if line.endswith("the run ends")]
    assert [*last[:2], *last[3:5]] == [*moment.split(), left, "left"]


def test_at_10_s_the_kubelet_looks_and_finds_nothing_to_do(run):
    """The document: it "notices memory.available < 100Mi"; by then both kills have freed enough."""
    code, out, _ = run("simulate", "race")

    assert code == 0
    rows = [line for line in out.splitlines() if " s  █" in line]
    assert [row.split()[0] for row in rows] == ["0.000", "1.000", "2.100", "3.500", "4.500", "10.000"]
    assert rows[-1].endswith("6Gi left  kubelet checked memory: 6Gi available, nothing to do")


def test_32_cores_wanted_affect_everybody_who_bursts_and_nobody_twice(run):
    """The document: all pods degraded. Each of four lacks CPU for 30 s, which is 2 min together."""
    code, out, _ = run("simulate", "cpu-burst")

    assert code == 0
    assert "6 of 22 pods unaffected; 16 short of CPU (worst: wide/analytics, down to 17 % of the CPU it wanted)." in out
    lines = reversed(out.splitlines())  # of two tables the first counts
    rows = {line.split()[0]: line.split() for line in lines if line.startswith(("wide/", "narrow/"))}
    assert {name: row[3] for name, row in rows.items()} == {
        **dict.fromkeys(("wide/analytics", "wide/indexer", "narrow/analytics", "narrow/indexer"), "0/4"),
        **dict.fromkeys(("wide/serving", "narrow/serving"), "3/3"),
    }
    assert {" ".join(row[-2:]) for name, row in rows.items() if "serving" not in name} == {"2 min"}


def test_the_picture_of_the_incident_lasts_as_long_as_the_outage(run, tmp_path):
    """Five minutes and ten seconds; the picture used to end at 2:24."""
    code, _, _ = run("simulate", "accidental-burstable", "--svg", "incident.svg")

    assert code == 0
    minutes = [int(each) for each in re.findall(r">(\d+) min<", (tmp_path / "incident.svg").read_text())]
    assert max(minutes) >= 7


# Eviction order, priority, and the race: commands that are asked the same say the same.

KUBELET = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
BY_PRIORITY = """\
apiVersion: v1
kind: Pod
metadata: {name: best-effort}
spec: {priorityClassName: latency-critical, containers: [{name: app, image: app:1}]}
---
apiVersion: v1
kind: Pod
metadata: {name: burstable}
spec: {containers: [{name: app, image: app:1, resources: {requests: {memory: 100Mi}}}]}
"""


def test_with_the_default_threshold_of_100mi_the_kernel_is_first_says_every_command(run, tmp_path):
    """On a node of 64Gi, of which the kernel keeps 325Mi; three commands gave three answers."""
    (tmp_path / "kubelet.yaml").write_text(KUBELET)
    node = ("--node-memory", "64Gi")

    _, thresholds, _ = run("thresholds", "kubelet.yaml", *node)
    _, check, _ = run("check", "kubelet.yaml", *node)
    growing = ("--growing", "log-collector", "--rate", "50Mi/s", "--kubelet-config", "kubelet.yaml")
    _, forecast, _ = run("forecast", "pods.yaml", "--usage", "usage.csv", *growing, *node)

    assert "The kernel always acts before the kubelet, at any growth rate" in thresholds
    assert "the kernel always kills before the kubelet evicts" in check
    assert "with 825Mi the kubelet always evicts first" in check
    assert "100 %  the kernel kills default/log-collector" in forecast


def test_best_effort_with_priority_1000000_goes_first_by_tiers_and_later_by_the_kubelet(run, tmp_path):
    """The document: still evicted before a Burstable pod with priority 0. The kubelet goes by the priority."""
    (tmp_path / "pods.yaml").write_text(BY_PRIORITY)
    (tmp_path / "usage.csv").write_text("pod,memory\nbest-effort,200Mi\nburstable,300Mi\n")
    pods = ("rank", "pods.yaml", "--usage", "usage.csv", "--priority", "latency-critical=1000000", "-o", "name")

    assert run(*pods, "--policy", "qos-tiers")[1].split()[0].endswith("best-effort")
    assert run(*pods)[1].split()[0].endswith("burstable")
    _, out, _ = run("check", "pods.yaml", "--priority", "latency-critical=1000000")
    assert "its priority of 1,000,000 delays its eviction, not an OOM kill" in out
    assert "does not help" not in out


@pytest.mark.parametrize("policy", ["kubelet", "qos-tiers"])
def test_rank_lists_every_pair_of_pods_that_it_counts_between_the_orders(run, policy):
    usage = str(PLATFORM.parent / "usage.csv")
    _, out, _ = run("rank", "-v", str(PLATFORM), "--usage", usage, "--node-memory", "64Gi", "--policy", policy)

    (count,) = re.findall(r"The orders disagree about (\d+) pairs of pods:", out)
    assert len(re.findall(r"^  the kubelet evicts \S+ before", out, re.MULTILINE)) == int(count) > 0
