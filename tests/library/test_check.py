"""``podqos.check``: findings of objects as values, whatever the files hold."""

from __future__ import annotations

import podqos
from podqos import CheckOptions, FailOn, FindingSeverity, Gate, Ignore
from podqos.advice.checks import examples
from podqos.advice.checks.baseline import baseline_of
from podqos.library.check import run_checks
from podqos.objects.objects import Objects

# No memory limit: PQ107, a warning. No ephemeral-storage limit: PQ108, for information.
OPEN = examples.web("cpu: 500m, memory: 512Mi")


def objects_of(**texts: str) -> Objects:
    objects = Objects()
    for name, text in texts.items():
        objects = objects.with_text(f"{name}.yaml", text.encode())
    return objects


def checks(report: podqos.CheckReport) -> list[str]:
    return [item.check for item in report.items]


def test_nothing_to_check_has_no_findings_assumes_nothing_and_passes():
    report = podqos.check(objects_of(a="", b="kind: [", c="just a text"))
    assert (report.items, report.assumptions, report.fails) == ((), (), False)
    assert report.summary.objects == 0


def test_a_file_that_cannot_be_read_is_a_problem_and_the_rest_is_checked(tmp_path):
    (tmp_path / "web.yaml").write_text(OPEN)
    objects = podqos.load(tmp_path / "gone.yaml", tmp_path)
    assert checks(podqos.check(objects)) == ["PQ107", "PQ108"]
    assert [problem.what for problem in objects.problems] == ["No such file or directory"]


def test_what_is_odd_about_the_files_is_among_their_problems_and_the_notes():
    objects = objects_of(a=OPEN.replace("{name: web}", "{name: web, annotations: {podqos.dev/ignore: PQ999}}"))
    report = podqos.check(objects)
    assert [str(problem) for problem in objects.problems] == list(report.notes)
    assert 'no check "PQ999"' in report.notes[0]
    assert podqos.check(objects) == report


def test_the_gate_decides_what_is_reported_and_what_fails():
    objects = objects_of(a=OPEN)
    severe = podqos.check(objects, gate=Gate(min_severity=FindingSeverity.WARNING))
    assert (checks(severe), severe.summary.below_min_severity, severe.fails) == (["PQ107"], 1, True)
    assert not podqos.check(objects, gate=Gate(fail_on=FailOn.ERROR)).fails


def test_what_is_ignored_or_known_is_shown_on_request_and_fails_nothing():
    objects = objects_of(a=OPEN)
    known = baseline_of(run_checks(objects).findings[:1])
    gate = Gate(ignore=(Ignore(reason="no disk", checks=("PQ108",)),), baseline=known)
    report = podqos.check(objects, gate=gate)
    assert (report.items, report.summary.suppressed, report.summary.in_baseline) == ((), 1, 1)
    shown = podqos.check(objects, gate=Gate(ignore=gate.ignore, baseline=known, show_suppressed=True))
    assert [item.suppression.by for item in shown.items] == ["baseline", "configuration"]
    assert not shown.fails


def test_a_resize_is_held_against_what_runs():
    running = objects_of(a=examples.web(*examples.EQUAL))
    wanted = objects_of(b=examples.web('cpu: "1", memory: 1Gi', 'cpu: "1", memory: 2Gi, ephemeral-storage: 1Gi'))
    (item,) = podqos.check(running, resized=wanted).items
    assert (item.check, item.source) == ("PQ113", "b.yaml")
    assert podqos.check(objects_of(), resized=wanted).items == ()
    assert [problem.what for problem in wanted.problems] == ["no Pod default/web to resize"]


def test_a_disabled_check_is_not_run_though_it_shares_its_rule():
    report = podqos.check(objects_of(a=OPEN), CheckOptions(disabled=frozenset({"PQ105", "PQ107"})))
    assert checks(report) == ["PQ108"]


def test_fixing_leaves_the_objects_as_they_were_and_gives_what_comes_after():
    objects = objects_of(a=OPEN.replace("memory: 512Mi}", "memory: 512m}"), b=OPEN)
    before = run_checks(objects)
    fixes, after = before.fix()
    assert [file.source for file in fixes.files] == ["a.yaml"]
    assert b"512Mi" in after.text("a.yaml")
    assert before.text("a.yaml") != after.text("a.yaml")
    assert [item.check for item in before.report.items if item.source == "a.yaml"] == ["PQ107", "PQ108", "PQ117"]
    assert [item.check for item in after.report.items if item.source == "a.yaml"] == ["PQ107", "PQ108"]
    assert objects.with_texts({}).workloads == objects.workloads
