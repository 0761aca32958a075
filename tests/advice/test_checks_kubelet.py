"""PQ4xx and PQ5xx at their edges."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from advice.bundles import apply_patch, bundle_of, check, check_text, plain_objects
from podqos.advice.checks.bundle import CheckOptions

HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
RESERVED = "kubeReserved: {memory: 1Gi}\nsystemReserved: {memory: 3Gi}\n"
HARD = "evictionHard: {memory.available: 1Gi, nodefs.available: 10%}\n"


def ids(text, options=None):
    """Return what was found."""
    return [finding.check for finding in check_text(text, options)]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        pytest.param(RESERVED + HARD, [], id="in order"),
        pytest.param(RESERVED, ["PQ404"], id="the defaults are too low for fast growth"),
        pytest.param(RESERVED + "evictionHard: {}\n", ["PQ401"], id="an empty map is none"),
        pytest.param(
            RESERVED + "evictionHard: {nodefs.available: 10%}\nmergeDefaultEvictionSettings: true\n",
            ["PQ404"],
            id="merged defaults watch memory",
        ),
        pytest.param(
            RESERVED + "evictionHard: {memory.available: 2%, nodefs.available: 10%}\n", [], id="a share of the node"
        ),
        pytest.param(
            RESERVED
            + "evictionHard: {memory.available: 100Mi, nodefs.available: 10%}\nkernelMemcgNotification: true\n",
            ["PQ404"],
            id="on cgroup v2 the kernel tells the kubelet nothing",
        ),
        pytest.param(
            RESERVED
            + HARD
            + "evictionSoft: {memory.available: 2Gi}\nevictionSoftGracePeriod: {memory.available: 0s}\n",
            ["PQ403"],
            id="a grace period of zero",
        ),
        pytest.param(
            RESERVED
            + HARD
            + "evictionSoft: {memory.available: 1Gi}\nevictionSoftGracePeriod: {memory.available: 1m}\n",
            ["PQ402"],
            id="soft equal to hard",
        ),
        pytest.param(HARD + "systemReserved: {memory: 1Gi}\n", [], id="one reservation is enough"),
        pytest.param(HARD + "reservedSystemCPUs: 0-1\n", ["PQ406"], id="cores are no memory"),
        pytest.param(RESERVED + HARD + "failSwapOn: false\n", [], id="swap that pods do not use"),
        pytest.param(
            RESERVED + HARD + "failSwapOn: false\nmemorySwap: {swapBehavior: LimitedSwap}\n", ["PQ407"], id="swap"
        ),
        pytest.param(
            RESERVED + HARD + "enforceNodeAllocatable: [system-reserved, pods]\nsystemReservedCgroup: /s\n",
            [],
            id="pods among others",
        ),
        pytest.param(
            RESERVED + HARD + "evictionMinimumReclaim: {memory.available: 5Gi}\n", [], id="five times is the most"
        ),
        pytest.param(
            RESERVED + "evictionHard: {memory.available: 1Gi, nodefs.available: 10%, containerfs.available: 5%}\n",
            ["PQ410"],
            id="containerfs",
        ),
        pytest.param(HARD + "systemReserved: {memory: 65Gi}\n", ["PQ412"], id="more than there is"),
        pytest.param(RESERVED + "evictionHard: {memory.free: 1Gi}\n", ["PQ412"], id="no such signal"),
        pytest.param(RESERVED + HARD + "evictionSoft: {memory.available: 2Gi}\n", ["PQ403"], id="no grace period"),
    ],
)
def test_kubelet_settings(settings, expected):
    assert ids(HEAD + settings) == expected


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(RESERVED, id="PQ404 with defaults"),
        pytest.param(
            RESERVED + "evictionHard: {memory.available: 1%, nodefs.available: 10%}\n", id="PQ404 with a share"
        ),
        pytest.param(
            RESERVED + HARD + "evictionSoft: {memory.available: 1%}\nevictionSoftGracePeriod: {memory.available: 1m}\n",
            id="PQ402 with a share",
        ),
        pytest.param(
            RESERVED + HARD
            + "evictionSoft: {memory.available: 2Gi}\nevictionSoftGracePeriod: {memory.available: 0s}\n",
            id="PQ403",
        ),
        pytest.param(
            "kubeReserved: {memory: 1Gi}\n" + HARD
            + "evictionSoft: {memory.available: 5%}\nevictionSoftGracePeriod: {memory.available: 1m}\n",
            id="PQ405 without a reservation for the system",
        ),
        pytest.param(RESERVED + HARD + "evictionMinimumReclaim: {memory.available: 50%}\n", id="PQ409 with a share"),
        pytest.param(
            RESERVED + HARD + "evictionSoft: {containerfs.available: 5%}\n"
            "evictionSoftGracePeriod: {containerfs.available: 1m}\n",
            id="PQ410 soft",
        ),
    ],
)  # fmt: skip
def test_patches_mend_the_settings(settings):
    options = replace(CheckOptions(), growth_bytes_per_second=100 << 20)
    objects = plain_objects(HEAD + settings)
    (finding,) = check(bundle_of(objects), options)
    apply_patch(objects[0], finding.patch)

    assert check(bundle_of(objects), options) == ()


def test_a_patch_that_names_one_threshold_keeps_the_other_defaults():
    (finding,) = check_text(HEAD + RESERVED)

    assert {edit.path for edit in finding.patch.edits} == {
        f"evictionHard[{signal}]"
        for signal in (
            "memory.available",
            "nodefs.available",
            "nodefs.inodesFree",
            "imagefs.available",
            "imagefs.inodesFree",
        )
    }


def test_a_hard_threshold_that_must_rise_takes_the_soft_one_with_it():
    soft = "evictionSoft: {memory.available: 500Mi}\nevictionSoftGracePeriod: {memory.available: 90s}\n"
    hard = "evictionHard: {memory.available: 100Mi, nodefs.available: 10%}\n"
    settings = f"{RESERVED}{hard}{soft}evictionMaxPodGracePeriod: 60\n"
    objects = plain_objects(HEAD + settings)
    (finding,) = check(bundle_of(objects), CheckOptions())
    assert [edit.path for edit in finding.patch.edits] == [
        "evictionHard[memory.available]",
        "evictionSoft[memory.available]",
    ]
    apply_patch(objects[0], finding.patch)

    assert check(bundle_of(objects), CheckOptions()) == ()


@pytest.mark.parametrize(
    ("hard", "path"),
    [
        pytest.param('["nodefs.available<10%", "memory.available<100Mi"]', "[1]", id="a pair in each value"),
        pytest.param('["nodefs.available<10%,memory.available<100Mi"]', "[0]", id="all in one"),
        pytest.param('["memory.available<50Mi", "memory.available<100Mi"]', "", id="twice: the last counts"),
    ],
)
def test_of_a_flag_the_value_is_edited_that_holds_the_pair(hard, path):
    arguments = f'{{eviction-hard: {hard}, kube-reserved: ["memory=1Gi"], system-reserved: ["memory=3Gi"]}}'
    text = f"apiVersion: v1\nkind: NodeConfig\nkubeletArguments: {arguments}\n"
    (finding,) = [each for each in check_text(text) if each.check == "PQ404"]
    assert [edit.path for edit in finding.patch.edits] == [f"kubeletArguments.eviction-hard{path}"]


def test_the_race_is_that_of_the_options():
    slow = replace(CheckOptions(), growth_bytes_per_second=10 << 20)

    assert ids(HEAD + RESERVED, slow) == []


def test_thresholds_are_held_against_the_smallest_node():
    """15% of 50Gi is less than 10Gi, of 500Gi it is more."""

    def node(name: str, memory: str, disk: str) -> str:
        capacity = f"{{cpu: 4, memory: {memory}, ephemeral-storage: {disk}}}"
        return f"---\napiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\nstatus: {{capacity: {capacity}}}\n"

    settings = (
        HEAD + RESERVED + "evictionHard: {memory.available: 1Gi, nodefs.available: 10Gi}\n"
        "evictionSoft: {nodefs.available: 15%}\nevictionSoftGracePeriod: {nodefs.available: 1m}\n"
    )
    small, large = node("small", "32Gi", "50Gi"), node("large", "64Gi", "500Gi")
    assert "PQ402" not in ids(settings + large)
    assert "PQ402" in ids(settings + large + small)
    assert "PQ402" in ids(settings + small + large)


NODE = (
    "---\napiVersion: v1\nkind: Node\nmetadata: {name: worker}\n"
    "status: {capacity: {cpu: 4, memory: 8Gi}, allocatable: {cpu: 4, memory: 8Gi}}\n"
)


def deployment(kind: str, replicas: int, requests: str, limits: str) -> str:
    """Return a workload with one container."""
    how_many = "" if kind == "DaemonSet" else f"  replicas: {replicas}\n"
    return (
        f"---\napiVersion: apps/v1\nkind: {kind}\nmetadata: {{name: w}}\nspec:\n{how_many}"
        "  selector: {matchLabels: {app: w}}\n  template:\n    metadata: {labels: {app: w}}\n"
        "    spec:\n      containers:\n        - name: c\n          image: x\n          resources:\n"
        f"            requests: {{{requests}}}\n            limits: {{{limits}, ephemeral-storage: 1Gi}}\n"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            deployment("Deployment", 9, "cpu: 1, memory: 1Gi", "cpu: 1, memory: 1Gi"), [], id="no nodes known"
        ),
        pytest.param(
            NODE + deployment("Deployment", 4, "cpu: 1, memory: 2Gi", "cpu: 2, memory: 2Gi"), [], id="just fits"
        ),
        pytest.param(
            NODE + deployment("Deployment", 5, "cpu: 500m, memory: 2Gi", "cpu: 500m, memory: 2Gi"),
            ["PQ502", "PQ503"],
            id="too many",
        ),
        pytest.param(
            NODE + NODE.replace("worker", "other")
            + deployment("DaemonSet", 1, "cpu: 3, memory: 1Gi", "cpu: 3, memory: 1Gi"),
            [],
            id="one on each node",
        ),
        pytest.param(
            NODE + deployment("Deployment", 0, "cpu: 5, memory: 1Gi", "cpu: 5, memory: 1Gi"), ["PQ504"], id="too large"
        ),
    ],
)  # fmt: skip
def test_capacity(text, expected):
    assert ids(text) == expected


def test_two_versions_of_a_workload_count_once():
    workload = deployment("Deployment", 3, "cpu: 1, memory: 1Gi", "cpu: 1, memory: 1Gi")

    assert ids(NODE + workload + workload) == []


def test_who_exceeds_most_is_named():
    (finding,) = check_text(NODE + deployment("Deployment", 2, "cpu: 1, memory: 1Gi", "cpu: 5, memory: 1Gi"))

    assert finding.check == "PQ501"
    assert finding.facts.largest == ("w",)
    assert finding.facts.ratio == 2.5


INODES = "evictionHard: {{memory.available: 1Gi, nodefs.available: 10%, {}}}\n"


@pytest.mark.parametrize(
    ("threshold", "disk", "expected"),
    [
        pytest.param("nodefs.inodesFree: 100Mi", None, ["PQ414"], id="as guides print it, on the disk that is assumed"),
        pytest.param("imagefs.inodesFree: 100Mi", "100Gi", ["PQ414"], id="of images"),
        pytest.param("nodefs.inodesFree: 100Mi", "500Gi", ["PQ414"], id="more than ext4 has, in a unit of bytes"),
        pytest.param("nodefs.inodesFree: 100M", "500Gi", [], id="XFS has so many"),
        pytest.param("nodefs.inodesFree: 300M", "500Gi", ["PQ414"], id="not even XFS has so many"),
        pytest.param("nodefs.inodesFree: 5%", "100Gi", [], id="a share"),
        pytest.param("nodefs.inodesFree: 100k", "100Gi", [], id="a number there is"),
        pytest.param("pid.available: 1k", None, [], id="process ids there are"),
        pytest.param("pid.available: 1M", None, ["PQ414"], id="more than 64Gi of memory allow"),
        pytest.param("nodefs.available: 10Gi", "100Gi", [], id="bytes are bytes"),
    ],
)
def test_thresholds_of_inodes_and_pids_that_are_met_from_the_start(threshold, disk, expected):
    node = f"capacity: {{memory: 64Gi, ephemeral-storage: {disk}}}"
    nodes = "" if disk is None else f"---\napiVersion: v1\nkind: Node\nmetadata: {{name: worker}}\nstatus: {{{node}}}\n"

    assert ids(HEAD + RESERVED + INODES.format(threshold) + nodes) == expected


def test_a_soft_threshold_of_inodes_is_held_against_the_node_as_well():
    soft = "evictionSoft: {nodefs.inodesFree: 100Mi}\nevictionSoftGracePeriod: {nodefs.inodesFree: 1m}\n"
    (finding,) = check_text(HEAD + RESERVED + HARD + soft)

    assert (finding.check, finding.path) == ("PQ414", "evictionSoft[nodefs.inodesFree]")
    assert "104,857,600 inodes; a filesystem of 100Gi has at most 52,428,800" in finding.facts.sentence("")
    assert not finding.patch.edits


@pytest.mark.parametrize(
    ("memory", "kubelet", "expected"),
    [
        pytest.param(12 << 30, "", [], id="it fits"),
        pytest.param(8 << 30, "", ["PQ504"], id="more than the node has"),
        pytest.param(10 << 30, "", ["PQ504"], id="all of it: the kubelet keeps 100Mi back"),
        pytest.param(12 << 30, HEAD + RESERVED + HARD, ["PQ504"], id="more than the kubelet leaves"),
        pytest.param(None, "", [], id="nothing was stated"),
    ],
)
def test_a_pod_is_held_against_a_node_of_which_only_the_memory_is_stated(memory, kubelet, expected):
    size = "{cpu: 1, memory: 10Gi, ephemeral-storage: 1Gi}"
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: model}\nspec:\n  containers:\n"
    pod += f"    - {{name: m, image: m, resources: {{requests: {size}, limits: {size}}}}}\n"
    text = pod + (f"---\n{kubelet}" if kubelet else "")

    assert ids(text, CheckOptions(node_memory_bytes=memory)) == expected
