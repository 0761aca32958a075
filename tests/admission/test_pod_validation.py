"""What the API server refuses about a pod besides its resources, rule by rule, in its own words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podqos.admission.decoding import read_pod
from podqos.admission.pod_validation import validate_new_pod
from podqos.model.pod import Pod

LABEL_KEY = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
LABEL_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
NODES = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
PREFERRED_NODES = "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]"
PODS = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
PREFERRED_PODS = "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]"
SPREAD = "spec.topologySpreadConstraints[0]"
RULE = {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}


def complaints(spec: dict | None = None, container: dict | None = None, **metadata: object) -> list[str]:
    """Return what is wrong with a pod that is in order but for these parts."""
    main = {"name": "main", "image": "app:1"} | (container or {})
    pod = read_pod({"metadata": {"name": "p"} | metadata, "spec": {"containers": [main]} | (spec or {})})
    assert isinstance(pod, Pod), pod
    return [str(error) for error in validate_new_pod(pod)]


def nodes(**term: object) -> dict:
    required = {"nodeSelectorTerms": [term]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def near(**term: object) -> dict:
    terms = [{"topologyKey": "zone", "labelSelector": {}} | term]
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def rather_away(weight: int, **term: object) -> dict:
    terms = [{"weight": weight, "podAffinityTerm": {"topologyKey": "zone"} | term}]
    return {"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}}


def spread(**constraint: object) -> dict:
    usual = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [usual | constraint]}


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        pytest.param({"labels": {"a": "b", "x.io/y": ""}}, [], id="labels"),
        pytest.param({"labels": {"a b": "c"}}, [f'metadata.labels: Invalid value: "a b": {LABEL_KEY}'], id="key"),
        pytest.param({"labels": {"a": "-c"}}, [f'metadata.labels: Invalid value: "-c": {LABEL_VALUE}'], id="value"),
        pytest.param(
            {"labels": {"a": "é" * 32}},
            [
                f'metadata.labels: Invalid value: "{"é" * 32}": must be no more than 63 bytes',
                f'metadata.labels: Invalid value: "{"é" * 32}": {LABEL_VALUE}',
            ],
            id="bytes-count",
        ),
        pytest.param({"annotations": {"UPPER.example/Key": "any thing"}}, [], id="annotations-in-upper-case"),
        pytest.param(
            {"annotations": {"a b": ""}}, [f'metadata.annotations: Invalid value: "a b": {LABEL_KEY}'], id="annotation"
        ),
        pytest.param(
            {"annotations": {"a": "x" * 2**18}},
            ["metadata.annotations: Too long: may not be more than 262144 bytes"],
            id="annotations-too-long",
        ),
    ],
)
def test_labels_and_annotations_are_spelled_as_labels_are(metadata, expected):
    assert complaints(**metadata) == expected


@pytest.mark.parametrize(
    ("cost", "accepted"),
    [
        ("0", True),
        ("-2147483648", True),
        ("2147483647", True),
        ("-007", True),
        ("007", False),
        ("+1", False),
        ("2147483648", False),
        ("-2147483649", False),
        ("", False),
        ("1" * 5000, False),
        ("１", False),
    ],
)
def test_the_cost_of_deletion_is_a_number_of_32_bits(cost, accepted):
    assert (complaints(annotations={"controller.kubernetes.io/pod-deletion-cost": cost}) == []) is accepted


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            {"restartPolicy": "Sometimes"},
            ['spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"'],
            id="restart-policy",
        ),
        pytest.param({"restartPolicy": ""}, [], id="restart-policy-defaulted"),
        pytest.param(
            {"activeDeadlineSeconds": 0},
            ["spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"],
            id="deadline-zero",
        ),
        pytest.param({"activeDeadlineSeconds": 2147483647}, [], id="longest-deadline"),
        pytest.param(
            {"activeDeadlineSeconds": 2147483648},
            ["spec.activeDeadlineSeconds: Invalid value: 2147483648: must be between 1 and 2147483647, inclusive"],
            id="deadline-too-long",
        ),
        pytest.param(
            {"nodeSelector": {"a": "-b"}}, [f'spec.nodeSelector: Invalid value: "-b": {LABEL_VALUE}'], id="selector"
        ),
        pytest.param(
            {"schedulingGates": [{"name": "a"}, {"name": "a"}]},
            ['spec.schedulingGates[1]: Duplicate value: "a"'],
            id="gate-twice",
        ),
        pytest.param(
            {"schedulingGates": [{"name": "a"}], "nodeName": "n"},
            ["spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"],
            id="gate-and-node",
        ),
        pytest.param({"os": {}}, ["spec.os.name: Required value"], id="system-without-name"),
        pytest.param(
            {"os": {"name": "plan9"}},
            ['spec.os: Unsupported value: "plan9": supported values: "linux", "windows"'],
            id="unknown-system",
        ),
        pytest.param(
            {"volumes": [{"name": "a", "emptyDir": {"sizeLimit": "-1Gi"}}, {"name": "a", "emptyDir": {}}]},
            ["spec.volumes[0].emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity"],
            id="a-volume-that-is-wrong-does-not-take-its-name",
        ),
        pytest.param(
            {"volumes": [{"name": "a", "emptyDir": {}}, {"name": "a", "emptyDir": {}}, {"name": "x.y"}, {}]},
            [
                'spec.volumes[1].name: Duplicate value: "a"',
                'spec.volumes[2].name: Invalid value: "x.y": must not contain dots',
                "spec.volumes[3].name: Required value",
            ],
            id="names-of-volumes",
        ),
        pytest.param(
            {"tolerations": [{"key": "a", "operator": "Lt", "value": "1"}]},
            ['spec.tolerations[0].operator: Unsupported value: "Lt": supported values: "Equal", "Exists", "Lt", "Gt"'],
            id="comparisons-are-off",
        ),
    ],
)
def test_fields_of_the_pod(spec, expected):
    assert complaints(spec) == expected


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        pytest.param({"restartPolicy": "Never"}, [], id="policy"),
        pytest.param(
            {"restartPolicy": ""},
            [
                (
                    'spec.containers[0].restartPolicy: Unsupported value: "": '
                    'supported values: "Always", "Never", "OnFailure"'
                )
            ],
            id="empty-is-not-absent",
        ),
        pytest.param({"restartPolicy": "Never", "restartPolicyRules": [RULE]}, [], id="rule"),
        pytest.param(
            {"restartPolicyRules": [RULE]},
            [
                (
                    "spec.containers[0].restartPolicy: Required value: "
                    "must specify restartPolicy when restart rules are used"
                )
            ],
            id="rule-without-policy",
        ),
        pytest.param(
            {"restartPolicy": "Never", "restartPolicyRules": [{"action": "Jump"}]},
            [
                (
                    'spec.containers[0].restartPolicyRules[0].action: Unsupported value: "Jump": '
                    'supported values: "Restart", "RestartAllContainers"'
                ),
                "spec.containers[0].restartPolicyRules[0].exitCodes: Required value: must be specified",
            ],
            id="rule-without-codes",
        ),
        pytest.param(
            {
                "restartPolicy": "Never",
                "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "Gt", "values": [1] * 256}}],
            },
            [
                (
                    'spec.containers[0].restartPolicyRules[0].exitCodes.operator: Unsupported value: "Gt": '
                    'supported values: "In", "NotIn"'
                ),
                "spec.containers[0].restartPolicyRules[0].exitCodes.values: Too many: 256: must have at most 255 items",
            ],
            id="codes",
        ),
        pytest.param(
            {"restartPolicy": "Never", "restartPolicyRules": [RULE] * 21},
            ["spec.containers[0].restartPolicyRules: Too many: 21: must have at most 20 items"],
            id="too-many-rules",
        ),
        pytest.param(
            {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}] * 2},
            ['spec.containers[0].resizePolicy[1]: Duplicate value: "cpu"'],
            id="resize-policy-twice",
        ),
        pytest.param(
            {"resizePolicy": [{"resourceName": "gpu", "restartPolicy": ""}]},
            [
                'spec.containers[0].resizePolicy: Unsupported value: "gpu": supported values: "cpu", "memory"',
                "spec.containers[0].resizePolicy: Required value",
            ],
            id="resize-policy",
        ),
        pytest.param(
            {"image": " app"},
            ['spec.containers[0].image: Invalid value: " app": must not have leading or trailing whitespace'],
            id="blank-before-the-image",
        ),
    ],
)
def test_fields_of_a_container(container, expected):
    assert complaints(container=container) == expected


def test_a_pod_that_never_restarts_cannot_restart_for_a_resize():
    policy = {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}
    assert complaints(container=policy) == []
    assert complaints({"restartPolicy": "Never"}, policy) == [
        (
            'spec.containers[0].resizePolicy: Invalid value: "RestartContainer": '
            "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
        )
    ]


def test_only_sidecars_restart_for_a_resize():
    policy = {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}
    init = {"name": "i", "image": "app:1"} | policy
    (complaint,) = complaints({"initContainers": [init]})
    words = 'resizePolicy[0].restartPolicy: Invalid value: "RestartContainer": must not be set to'
    assert complaint.startswith(f"spec.initContainers[0].{words}")
    assert complaints({"initContainers": [init | {"restartPolicy": "Always"}]}) == []


def test_rules_without_a_policy_are_not_looked_at_in_an_init_container():
    init = {"name": "i", "image": "app:1", "restartPolicyRules": [{"action": "Jump"}]}
    assert complaints({"initContainers": [init]}) == [
        "spec.initContainers[0].restartPolicy: Required value: must specify restartPolicy when restart rules are used"
    ]


def test_ephemeral_containers_have_no_resources_and_a_target_that_exists():
    debug = {"name": "main", "image": "sh", "targetContainerName": "nope"} | {
        "resources": {"requests": {"cpu": "1"}},
    }
    path = "spec.ephemeralContainers[0]"
    assert complaints({"ephemeralContainers": [debug]}) == [
        f'{path}.name: Duplicate value: "main"',
        f'{path}.targetContainerName: Not found: "nope"',
        f"{path}.resources: Forbidden: cannot be set for an Ephemeral Container",
        "spec.ephemeralContainers: Forbidden: cannot be set on create",
    ]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            nodes(matchExpressions=[{"key": "a b", "operator": "In", "values": ["-b"]}]),
            [
                f'{NODES}.matchExpressions[0].key: Invalid value: "a b": {LABEL_KEY}',
                f'{NODES}.matchExpressions[0].values[0]: Invalid value: "-b": {LABEL_VALUE}',
            ],
            id="spelling",
        ),
        pytest.param(
            nodes(matchFields=[{"key": "metadata.name", "operator": "In", "values": ["Node_A"]}]),
            [
                (
                    f'{NODES}.matchFields[0].values[0]: Invalid value: "Node_A": a lowercase RFC 1123 subdomain must '
                    "consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
                    "alphanumeric character (e.g. 'example.com', regex used for validation is "
                    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                )
            ],
            id="name-of-a-node",
        ),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "weight": 101,
                                "preference": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["-b"]}]},
                            }
                        ]
                    }
                }
            },
            [f"{PREFERRED_NODES}.weight: Invalid value: 101: must be in the range 1-100"],
            id="a-preference-may-have-values-that-no-label-has",
        ),
        pytest.param(
            near(namespaces=["A.B"]),
            [
                (
                    f'{PODS}.namespace: Invalid value: "A.B": a lowercase RFC 1123 label must consist of lower case '
                    "alphanumeric characters or '-', and must start and end with an alphanumeric character "
                    "(e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
                )
            ],
            id="namespace",
        ),
        pytest.param(
            near(matchLabelKeys=["q"], mismatchLabelKeys=["q"]),
            [f'{PODS}.matchLabelKeys[0]: Invalid value: "q": exists in both matchLabelKeys and mismatchLabelKeys'],
            id="key-in-both-lists",
        ),
        pytest.param(
            near(labelSelector=None, matchLabelKeys=["q"], mismatchLabelKeys=["r"]),
            [
                f"{PODS}.{name}: Forbidden: must not be specified when labelSelector is not set"
                for name in ("matchLabelKeys", "mismatchLabelKeys")
            ],
            id="keys-without-a-selector",
        ),
        pytest.param(
            near(labelSelector={"matchLabels": {"a": "-b"}}, namespaceSelector={"matchExpressions": [{"key": "k"}]}),
            [
                f'{PODS}.labelSelector.matchLabels: Invalid value: "-b": {LABEL_VALUE}',
                (
                    f'{PODS}.namespaceSelector.matchExpressions[0].operator: Invalid value: "": '
                    "not a valid selector operator"
                ),
            ],
            id="selectors",
        ),
        pytest.param(
            rather_away(0, topologyKey="a b"),
            [
                f"{PREFERRED_PODS}.weight: Invalid value: 0: must be in the range 1-100",
                f'{PREFERRED_PODS}.podAffinityTerm.topologyKey: Invalid value: "a b": {LABEL_KEY}',
            ],
            id="preference",
        ),
        pytest.param(
            spread(labelSelector={"matchExpressions": [{"key": "a", "operator": "In"}]}),
            [
                (
                    f"{SPREAD}.labelSelector.matchExpressions[0].values: Required value: "
                    "must be specified when `operator` is 'In' or 'NotIn'"
                )
            ],
            id="selector-of-a-spread",
        ),
        pytest.param(spread(topologyKey="a b"), [], id="the-key-of-a-spread-is-not-spelled-checked"),
    ],
)
def test_where_a_pod_wants_to_run(spec, expected):
    assert complaints(spec) == expected


def test_a_key_that_the_pods_own_labels_add_to_the_selector_must_not_be_there_already():
    """Only then does the merged selector name it twice."""
    selector = {"matchLabels": {"q": "1"}}
    spec = near(labelSelector=selector, matchLabelKeys=["q"])
    assert complaints(spec) == []
    assert complaints(spec, labels={"q": "1"}) == [
        f'{PODS}[0]: Invalid value: "q": exists in both matchLabelKeys and labelSelector'
    ]


@given(st.text(max_size=70))
def test_every_text_is_a_label_value_or_is_refused_for_it(text):
    """No text stops validation, and what is refused is refused at its field."""
    found = complaints({"nodeSelector": {"a": text}}, labels={"a": text})
    assert {complaint.partition(":")[0] for complaint in found} in (set(), {"metadata.labels", "spec.nodeSelector"})
