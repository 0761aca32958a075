"""Source 001, "the oom killer of Kubernetes": the constants and the formula, as they were up to v1.19."""

from __future__ import annotations

import pytest

from podqos.cli.main import main
from podqos.model.pod import QOSClass
from podqos.model.profile import parse_version
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.qos.classes import classify
from podqos.qos.oom import COMPONENT_OOM_SCORE_ADJ, oom_scores
from podqos.qos.run_flags import run_flags

GIB = 2**30
THEN = parse_version("1.13")  # when the class had the names the document quotes

GUARANTEED = "containers: [{name: app, resources: {limits: {cpu: 1, memory: 1Gi}}}]"
BEST_EFFORT = "containers: [{name: app}]"


def _burstable(memory: str) -> str:
    return f"containers: [{{name: app, resources: {{requests: {{memory: {memory}}}}}}}]"


def _value(pod, node_bytes, profile=THEN):
    (score,) = oom_scores(pod, classify(pod, profile).qos_class, node_bytes, profile)
    return score.value


@pytest.mark.parametrize(
    ("component", "value"),
    [("pod sandbox", -998), ("kubelet", -999), ("container runtime", -999), ("kube-proxy", -999)],
)
def test_fixed_value_of(component, value):
    assert COMPONENT_OOM_SCORE_ADJ[component] == value


@pytest.mark.parametrize("version", ["1.8", "1.13", "1.19"])
def test_guaranteed_was_minus_998_up_to_1_19(admitted, version):
    assert _value(admitted(GUARANTEED), 64 * GIB, parse_version(version)) == -998


def test_best_effort_is_1000(admitted):
    assert _value(admitted(BEST_EFFORT), 64 * GIB) == 1000


@pytest.mark.parametrize(
    ("memory", "node_bytes", "value"),
    [
        pytest.param("1Gi", 10 * GIB, 900, id="a tenth of the node"),
        pytest.param("5Gi", 10 * GIB, 500, id="half"),
        pytest.param("1", 10 * GIB, 999, id="next to nothing: kept below BestEffort's 1000"),
        pytest.param("0", 10 * GIB, 999, id="cpu only"),
        pytest.param("10219Mi", 10 * GIB, 3, id="one above the floor"),
        pytest.param("10Gi", 10 * GIB, 2, id="the whole node: 1000 + (-998), though a comment beside the code says 1"),
        pytest.param("20Gi", 10 * GIB, 2, id="more than the node"),
    ],
)
def test_burstable_formula(admitted, memory, node_bytes, value):
    fragment = f"containers: [{{name: app, resources: {{requests: {{cpu: 100m, memory: {memory}}}}}}}]"

    assert _value(admitted(fragment), node_bytes) == value


def test_best_effort_goes_first_then_the_smaller_request_and_guaranteed_last(admitted):
    pods = [admitted(text) for text in (BEST_EFFORT, _burstable("1Gi"), _burstable("8Gi"), GUARANTEED)]

    values = [_value(pod, 64 * GIB) for pod in pods]

    assert values == sorted(values, reverse=True)
    assert len(set(values)) == 4
    assert [classify(pod, THEN).qos_class for pod in pods] == [
        QOSClass.BEST_EFFORT,
        QOSClass.BURSTABLE,
        QOSClass.BURSTABLE,
        QOSClass.GUARANTEED,
    ]


# The flags of `docker help run`.

DOCUMENTED_FLAGS = {
    "--cpu-percent",
    "--cpu-period",
    "--cpu-quota",
    "--cpu-shares",
    "--cpuset-cpus",
    "--cpuset-mems",
    "--oom-kill-disable",
    "--oom-score-adj",
    "--kernel-memory",
    "--memory",
    "--memory-reservation",
    "--memory-swap",
    "--memory-swappiness",
}


@pytest.fixture
def flags(admitted):
    pod = admitted("containers: [{name: app, resources: {requests: {memory: 1Gi}, limits: {cpu: 500m, memory: 2Gi}}}]")
    (app,) = run_flags(pod, QOSClass.BURSTABLE, CgroupSettings(node_memory_bytes=10 * GIB))
    return {flag.name: flag.value for flag in app.flags}


def test_every_documented_flag_is_accounted_for(flags):
    assert flags.keys() == DOCUMENTED_FLAGS


def test_kubernetes_sets_the_score_through_the_oom_score_adj_flag(flags):
    assert flags["--oom-score-adj"] == "900"


def test_kubernetes_never_disables_the_oom_killer(flags):
    assert flags["--oom-kill-disable"] is None


def test_limits_become_memory_and_quota(flags):
    assert (flags["--memory"], flags["--cpu-period"], flags["--cpu-quota"]) == ("2147483648", "100000", "50000")


# The same through the commands.

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: example}
spec:
  containers:
    - name: app
      image: app
      resources:
        requests: {memory: 1Gi}
        limits: {cpu: 500m, memory: 2Gi}
"""


@pytest.fixture
def verbose(tmp_path, capsys):
    """Return what ``explain -v`` says about a pod, line by line."""

    def of(*options: str) -> list[str]:
        (tmp_path / "pod.yaml").write_text(POD)
        assert main(["explain", "-v", "-f", str(tmp_path / "pod.yaml"), "--node-memory", "10Gi", *options]) == 0
        return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]

    return of


@pytest.mark.parametrize(
    "line",
    [
        "--cpu-percent – Windows only",
        "--cpu-period 100000 limit 500m",
        "--cpu-quota 50000 limit 500m",
        "--cpu-shares 512 request 500m",
        "--cpuset-cpus – no Kubernetes counterpart: it uses the shared CPU pool",
        "--cpuset-mems – no Kubernetes counterpart: all NUMA nodes may be used",
        "--oom-kill-disable – Kubernetes relies on the OOM killer; cgroup v2 has no such file",
        "--oom-score-adj 900 the container's oom_score_adj",
        "--kernel-memory – removed in Linux 5.16, Docker 23.0, podman 4.0",
        "--memory 2147483648 limit 2Gi",
        "--memory-reservation – no Kubernetes counterpart: requests reach the kernel only with MemoryQoS",
        "--memory-swap 2147483648 no swap",
        ("--memory-swappiness – the kubelet leaves the node's swappiness alone; cgroup v2 has no such file"),
    ],
    ids=lambda line: line.partition(" ")[0],
)
def test_explain_verbose_says_what_became_of(verbose, line):
    assert line in verbose()


@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_explain_verbose_lists_every_documented_flag_once(verbose, engine):
    listed = [line.partition(" ")[0] for line in verbose("--engine", engine) if line.startswith("--")]
    assert sorted(listed) == sorted(DOCUMENTED_FLAGS)


def test_without_verbose_the_flags_are_one_line(verbose, capsys, tmp_path):
    verbose()
    main(["explain", "-f", str(tmp_path / "pod.yaml"), "--node-memory", "10Gi"])
    out = capsys.readouterr().out
    assert "--cpu-percent" not in out
    assert "kube-proxy" not in out


COMPONENT_LINES = [
    "kubelet -999 1 oomScoreAdj in its configuration",
    "kube-proxy -999 1 oomScoreAdj in its configuration",
    "container runtime -999 1 OOMScoreAdjust in its systemd unit",
    "pod sandbox -998 2 the container runtime",
]


@pytest.mark.parametrize("line", COMPONENT_LINES, ids=lambda line: line.partition(" -")[0])
def test_explain_verbose_and_rank_have_the_fixed_value_of(verbose, ranked, line):
    assert line in verbose()
    assert line in ranked()


@pytest.fixture
def ranked(tmp_path, capsys):
    """Return what ``rank`` says about the pod with 1Gi in use on a node of 10Gi, line by line."""

    def of(*options: str) -> list[str]:
        (tmp_path / "pod.yaml").write_text(POD)
        (tmp_path / "usage.csv").write_text("pod,memory\nexample,1Gi\n")
        files = ["-f", str(tmp_path / "pod.yaml"), "--usage", str(tmp_path / "usage.csv")]
        assert main(["rank", "-v", *files, "--node-memory", "10Gi", *options]) == 0
        return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]

    return of


def test_rank_shows_what_proc_pid_oom_score_would(ranked):
    """A tenth of the node in use and an adjustment of 900: the whole node, less what the kernel rounds off."""
    headers, row = _table(ranked(), "CONTAINER CLASS USES SHARE + ADJ = POINTS BADNESS SCORE")
    assert "SCORE" in headers
    assert "100.0 + 900 = 1000.0 10.0Gi 1332" in row


def test_the_shown_score_is_of_the_machine_also_where_the_pods_cgroup_runs_out(ranked, tmp_path):
    """``oom_score`` in /proc knows no cgroups; only the badness at the kill is of the limit that was hit."""
    file = tmp_path / "kubelet.yaml"
    file.write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nkubeReserved: {memory: 5Gi}\n"
    )
    lines = ranked("--kubelet-config", str(file))
    _, row = _table(lines, "CONTAINER CLASS USES SHARE + ADJ = POINTS BADNESS SCORE")
    assert "200.1 + 900 = 1100.1 5.5Gi 1332" in row


def _table(lines: list[str], headers: str) -> tuple[str, str]:
    """Return the headers and the first row of a table."""
    start = next(index for index, line in enumerate(lines) if headers in line)
    return lines[start], lines[start + 1]


def test_the_kubelets_own_score_is_what_its_configuration_says(ranked, verbose, tmp_path):
    file = tmp_path / "kubelet.yaml"
    file.write_text("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\noomScoreAdj: -500\n")
    for lines in (ranked("--kubelet-config", str(file)), verbose("--kubelet-config", str(file))):
        assert "kubelet -500 334 oomScoreAdj in its configuration" in lines
        assert "kube-proxy -999 1 oomScoreAdj in its configuration" in lines
