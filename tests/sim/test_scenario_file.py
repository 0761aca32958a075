"""Whatever a scenario file says, the answer is a scenario or a list of problems."""

import json

from hypothesis import given
from hypothesis import strategies as st

from podqos.manifest.problems import Severity
from podqos.model.pod import Container, ObjectMeta, Pod, PodSpec
from podqos.sim.scenario.scenario import ScenarioWorkload
from podqos.sim.scenario_format.file import Materials, read_file, resolve

WEB = ScenarioWorkload(
    kind="Deployment",
    namespace="default",
    name="web",
    pod=Pod(ObjectMeta("web", "default"), PodSpec(containers=(Container("web"),))),
)
WHOLE = {
    "apiVersion": "podqos.dev/v1alpha1",
    "kind": "Scenario",
    "metadata": {"name": "x"},
    "spec": {
        "duration": "10m",
        "nodes": [
            {
                "name": "node",
                "count": 2,
                "capacity": {"cpu": 4, "memory": "8Gi", "pids": 100},
                "filesystems": {"nodefs": {"capacity": "1Gi", "inodes": 5}},
                "system": {"memory": "1Gi"},
                "watermarks": {"min": "1Mi", "low": "2Mi"},
                "kubelet": {"evictionHard": {"memory.available": "1Gi"}},
                "loopPhase": "1s",
            }
        ],
        "workloads": [
            {
                "workload": "web",
                "demand": {
                    "memory": {"wave": {"low": 1, "high": 2, "period": "1m", "peak": "3s"}, "base": 1},
                    "cpu": {"random": {"low": 0, "high": 1, "every": "1m", "step": "10m"}},
                    "logs": {"steps": {"0s": 1, "5s": 2}},
                    "rootfs": "1Gi + 2Gi over 3s",
                    "exits": {"after": "1s"},
                },
            }
        ],
        "events": [{"at": "1m", "nodeLost": "node-0"}],
        "timing": {"recreate": "1s"},
    },
}
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "1Gi", "10%", "-1", "1s", "1Gi per 1ns", "99999d", "1e30", "node", "é\n"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["name", "wave", "0s", "é"]), inner),
    max_leaves=4,
)


def paths(value, path=()):
    yield path
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from paths(item, (*path, key))


def answer(document):
    reading = read_file("x.yaml", json.dumps(document).encode())
    if reading.document is None:
        assert reading.problems
        return None, reading.problems
    scenario, findings = resolve(reading.document, Materials((WEB,)))
    return scenario, tuple(map(reading.problem, findings))


def test_the_whole_document_is_in_order():
    scenario, problems = answer(WHOLE)
    assert problems == ()
    assert scenario is not None


@given(st.sampled_from([path for path in paths(WHOLE) if path]), VALUES)
def test_anything_anywhere_is_understood_or_refused_with_its_place(path, value):
    document = json.loads(json.dumps(WHOLE))
    inner = document
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    scenario, problems = answer(document)
    assert (scenario is None) == any(problem.severity is Severity.ERROR for problem in problems)
    assert all(problem.line >= 1 and problem.what and str(problem).isprintable() for problem in problems)


@given(st.binary(max_size=60))
def test_any_bytes_are_understood_or_refused(data):
    assert read_file("x.yaml", data).problems
