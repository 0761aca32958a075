"""One directory is not one cluster: whose policies apply to what, and which workloads are compared."""

import json
import re

import pytest

from podqos.cli.main import main

LIMITS = """\
apiVersion: v1
kind: LimitRange
metadata: {name: bounds}
spec: {limits: [{type: Container, max: {memory: 100Mi}}]}
"""
DEFAULTS = LIMITS.replace("max: {memory: 100Mi}", "default: {cpu: 1, memory: 512Mi}").replace("bounds", "defaults")
GOLD = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: gold}\nvalue: 7000\n"


def pod(name, memory="1Gi", extra=""):
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  {extra}\n  containers:\n"
        f"    - {{name: c, image: i, resources: {{requests: {{memory: {memory}}}, limits: {{memory: {memory}}}}}}}\n"
    )


@pytest.fixture
def tree(capsys, tmp_path, monkeypatch):
    """Write files, by path, and run commands among them."""
    monkeypatch.chdir(tmp_path)

    def write(files):
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)

        def run(*arguments):
            code = main([str(each) for each in arguments])
            return code, *capsys.readouterr()

        return run

    return write


def refused(out):
    return sorted(each["name"] for each in json.loads(out)["items"] if each["check"] == "PQ203")


TREE = {"a/limits.yaml": LIMITS, "a/one.yaml": pod("one"), "a/deep/two.yaml": pod("two"), "b/three.yaml": pod("three")}


def test_walked_policies_apply_to_their_own_directory_and_below(tree):
    _, out, _ = tree(TREE)("check", "-f", ".", "-o", "json")
    assert refused(out) == ["one", "two"]


@pytest.mark.parametrize("option", ["-f", "--policies"])
def test_policies_of_files_that_are_named_apply_to_everything(tree, option):
    _, out, _ = tree(TREE)("check", "-f", ".", option, "a/limits.yaml", "-o", "json")
    assert refused(out) == ["one", "three", "two"]


def test_it_is_said_whose_policies_apply_to_whom(tree):
    run = tree(TREE)
    said = "policies of a/limits.yaml: for their own directory and below (to apply them to all: -f FILE"
    for command in (["check"], ["explain", "-o", "table"], ["rank"], ["cpu", "--cores", "2"]):
        _, _, err = run(*command, "-f", ".")
        assert said in err.replace("./a", "a"), command
    _, _, err = run("check", "-f", "a")
    assert "own directory" not in err  # it applies to everything that is checked


def test_fix_does_not_touch_files_that_the_policy_has_nothing_to_do_with(tree, tmp_path):
    run = tree({**TREE, "a/limits.yaml": LIMITS.replace("max: {memory: 100Mi}", "min: {memory: 2Gi}")})
    before = (tmp_path / "b/three.yaml").read_text()
    run("check", "-f", ".", "--fix", "--only", "PQ203")
    assert (tmp_path / "b/three.yaml").read_text() == before
    assert "2Gi" in (tmp_path / "a/one.yaml").read_text()


@pytest.mark.parametrize("command", [["place", "--nodes", "1", "--node-capacity", "cpu=4,memory=8Gi"], ["rank"]])
def test_a_workload_is_not_refused_by_a_policy_of_another_directory(tree, command):
    _, out, err = tree(TREE)(*command, "-f", ".", "-o", "json")
    assert re.search(r'"(default/)?three"', out)
    assert not re.search(r'"(default/)?one"', out)
    assert err.count("maximum memory usage per Container is 100Mi") == 2


def test_explain_applies_the_policies_of_the_directory(tree):
    bare = "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME}\nspec: {containers: [{name: c, image: i}]}\n"
    files = {
        "a/limits.yaml": DEFAULTS,
        "a/x.yaml": bare.replace("NAME", "one"),
        "b/y.yaml": bare.replace("NAME", "two"),
    }
    _, out, _ = tree(files)("explain", "-f", ".", "-o", "csv")
    assert [line.split(",")[1:4:2] for line in out.splitlines()[1:]] == [["one", "Guaranteed"], ["two", "BestEffort"]]


def test_explain_on_all_cores_applies_the_same_policies(tree, monkeypatch):
    bare = "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME}\nspec: {containers: [{name: c, image: i}]}\n"
    files = {f"{folder}/{n}.yaml": bare.replace("NAME", f"{folder}{n}") for folder in "ab" for n in range(3)}
    run = tree({**files, "a/limits.yaml": DEFAULTS})
    alone = run("explain", "-f", ".", "-o", "csv")
    monkeypatch.setattr("podqos.parallel.WORTH_FORKING_BYTES", 1)
    assert run("explain", "-f", ".", "-o", "csv") == alone
    assert alone[1].count("Guaranteed") == 3


def test_the_nearest_class_of_a_name_counts(tree):
    files = {
        "gold.yaml": GOLD,
        "a/gold.yaml": GOLD.replace("7000", "5"),
        "a/one.yaml": pod("one", extra="priorityClassName: gold"),
        "b/two.yaml": pod("two", extra="priorityClassName: gold"),
    }
    _, out, err = tree(files)("rank", "-f", ".", "-o", "json")
    priorities = {each["pod"]: each["priority"] for each in json.loads(out)["evictionOrder"]}
    assert priorities == {"default/one": 5, "default/two": 7000}
    assert err == ""


def test_a_class_of_another_directory_is_assumed_and_the_file_is_named(tree):
    files = {"infra/gold.yaml": GOLD, "app/web.yaml": pod("web", extra="priorityClassName: gold")}
    run = tree(files)
    _, _, err = run("explain", "-f", ".", "-o", "table")
    assert "priority of class gold: 0 (--priority gold=VALUE, or -f ./infra/gold.yaml, which applies" in err
    _, _, err = run("explain", "-f", ".", "-f", "infra/gold.yaml", "-o", "table")
    assert "class gold" not in err


def test_policies_of_one_name_in_two_directories_are_two(tree):
    files = {f"{name}/limits.yaml": LIMITS for name in "ab"} | {f"{name}/pod.yaml": pod(name) for name in "ab"}
    code, out, err = tree(files)("check", "-f", ".", "-o", "json")
    assert (code, refused(out)) == (1, ["a", "b"])
    assert "given twice" not in err + out


def test_admit_charges_a_named_quota_over_all_directories_and_walked_ones_over_their_own(tree):
    quota = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec: {hard: {pods: 1}}\n"
    files = {f"{name}/pod.yaml": pod(name) for name in "ab"}
    run = tree({**files, "a/quota.yaml": quota})
    admitted = [
        [item["podsAdmitted"] for item in json.loads(run("admit", "-f", ".", *named, "-o", "json")[1])["items"]]
        for named in ([], ["-f", "a/quota.yaml"])
    ]
    assert admitted == [[1, 1], [1, 0]]


def test_only_workloads_of_the_same_directory_are_compared(tree):
    bare = "apiVersion: v1\nkind: Pod\nmetadata: {name: weak}\nspec: {containers: [{name: c, image: i}]}\n"
    files = {"a/weak.yaml": bare, "b/safe.yaml": pod("safe", "4Gi")}
    run = tree(files)

    def named(*options):
        return json.loads(run("check", *options, "-o", "json")[1])["items"]

    apart = json.dumps([each["consequence"] for each in named("-f", ".")])
    assert "default/safe" not in apart
    together = json.dumps([each["consequence"] for each in named("a/weak.yaml", "b/safe.yaml")])
    assert "default/safe" in together


def test_a_missing_priority_is_held_against_workloads_of_the_same_directory(tree):
    files = {"gold.yaml": GOLD, "a/one.yaml": pod("one", extra="priorityClassName: gold"), "b/two.yaml": pod("two")}
    _, out, _ = tree(files)("check", "-f", ".", "-o", "json")
    assert not any(each["check"] == "PQ301" for each in json.loads(out)["items"])


def test_limit_ranges_that_contradict_each_other_in_one_directory_are_alternatives_and_not_applied(tree):
    small = LIMITS.replace("bounds", "small").replace("100Mi", "50Mi")
    run = tree({"a/limits.yaml": LIMITS, "a/small.yaml": small, "a/one.yaml": pod("one")})
    code, out, err = run("check", "-f", ".")
    assert "PQ203" not in out
    assert "policies of ./a/limits.yaml, ./a/small.yaml: not applied, as they contradict each other" in err
    code, out, _ = run("check", "-f", ".", "-f", "a/small.yaml", "-o", "json")
    assert (code, refused(out)) == (1, ["one"])


def test_a_default_beyond_the_bound_of_another_file_is_an_alternative(tree):
    _, out, err = tree({"a/limits.yaml": LIMITS, "a/defaults.yaml": DEFAULTS, "a/one.yaml": pod("one")})(
        "check", "-f", "."
    )
    assert "PQ203" not in out
    assert "contradict each other" in err


def test_limit_ranges_of_several_files_that_agree_all_apply(tree):
    cpu = LIMITS.replace("bounds", "cpu").replace("{memory: 100Mi}", "{cpu: 100m}")
    _, out, _ = tree({"a/limits.yaml": LIMITS, "a/cpu.yaml": cpu, "a/one.yaml": pod("one")})("check", "-f", ".")
    assert "maximum memory usage per Container is 100Mi" in out


def test_defaults_that_contradict_each_other_are_still_a_finding(tree):
    other = DEFAULTS.replace("512Mi", "1Gi").replace("defaults", "team")
    _, out, _ = tree({"a/limits.yaml": DEFAULTS, "a/team.yaml": other})("check", "-f", ".")
    assert "PQ204" in out


def test_drift_compares_workloads_of_the_same_directory(tree):
    files = {
        "old/a/one.yaml": pod("one"),
        "old/b/two.yaml": pod("two"),
        "new/a/one.yaml": pod("one").replace("requests: {memory: 1Gi}", "requests: {memory: 1Mi}"),
        "new/b/two.yaml": pod("two"),
    }
    run = tree(files)
    _, out, _ = run("drift", "old", "new", "-o", "json")
    moves = [each["movedAhead"] + each["movedBack"] for each in json.loads(out)["workloads"]]
    assert moves == [[], []]


@pytest.mark.parametrize("forking_bytes", [1, 1 << 20])
def test_a_file_that_is_walked_and_named_is_one_file(tree, monkeypatch, forking_bytes):
    monkeypatch.setattr("podqos.parallel.WORTH_FORKING_BYTES", forking_bytes)
    _, out, _ = tree(TREE)("explain", "-f", ".", "-f", "b/three.yaml", "-f", "b", "-o", "csv")
    assert sorted(line.split(",")[1] for line in out.splitlines()[1:]) == ["one", "three", "two"]


def test_place_takes_nodes_and_pods_of_one_name_in_several_directories_for_what_they_are(tree):
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: node}\nstatus: {capacity: {cpu: 4, memory: 8Gi, pods: 9}}\n"
    live = pod("p").replace("{name: p}", "{name: p, uid: UID}")
    files = {
        f"{name}/{kind}.yaml": text.replace("UID", name) for name in "ab" for kind, text in (("n", node), ("p", live))
    }
    code, out, err = tree(files)("place", "-f", ".", "-o", "csv")
    assert (code, len(out.splitlines())) == (0, 3)
    assert "several Nodes have the same name; the last one counts" in err
